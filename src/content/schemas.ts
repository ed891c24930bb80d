import { Type, type Static } from 'typebox'
import { Uid } from '../base/uid.ts'

// Wire names as the published API spells them.

export const ContentSigningKey = Type.Object(
  {
    key: Type.String({ description: 'The public key that uploads are checked with.' }),
    description: Type.String({ description: 'Description from the configuration; may be empty.' }),
    creationTimestamp: Type.String({ format: 'date-time' }),
  },
  { title: 'ContentSigningKey' },
)
export type ContentSigningKey = Static<typeof ContentSigningKey>

export const Bundle = Type.Object(
  {
    uid: Type.String(),
    name: Type.String({ description: 'For people; several bundles may have the same name.' }),
    indexDigest: Type.String({ description: 'Digest of its index.json: its identity.' }),
    publishedAt: Type.String({ format: 'date-time' }),
    fileName: Type.String({ description: 'Name of the uploaded file; empty for an upload blob by blob.' }),
    fileSizeBytes: Type.Integer({ description: 'Size of the uploaded file; 0 for an upload blob by blob.' }),
    sizeBytes: Type.Integer({ description: 'Size of its blobs, each counted once.' }),
    blobCount: Type.Integer(),
    images: Type.Integer({ description: 'Images that it lists.' }),
    architectures: Type.Array(Type.String(), {
      description: 'Architectures of the images and programs that it carries, for example amd64.',
    }),
    isForeign: Type.Boolean({
      description: 'Whether it has images or programs, but none for the architecture of this host.',
    }),
    definition: Type.Optional(
      Type.Object(
        { digest: Type.String(), sizeBytes: Type.Integer() },
        { description: 'The cluster definition in it.' },
      ),
    ),
    damagedBlobs: Type.Integer({
      description:
        'Blobs that are damaged on the disk and not served; any upload that has them repairs them.',
    }),
    isPinned: Type.Boolean({
      description: 'Whether something on this host needs it, so that it cannot be deleted.',
    }),
    holders: Type.Array(Type.String(), { description: 'Holders that need it.' }),
  },
  { title: 'Bundle' },
)
export type Bundle = Static<typeof Bundle>

export const BundleEntry = Type.Object(
  {
    number: Type.Integer({ description: 'Grows in the order of index.json of the bundle.' }),
    kind: Type.String({ description: 'image, chart, program, file, definition or artifact.' }),
    digest: Type.String({ description: 'Digest of its index or manifest.' }),
    mediaType: Type.String(),
    name: Type.String({
      description: 'For example docker.io/library/busybox; empty if it can be pulled by digest only.',
    }),
    tag: Type.String(),
    hasTag: Type.Boolean({
      description: 'Whether the tag leads here: of several bundles with the same tag, the newest one has it.',
    }),
    title: Type.String({ description: 'Name of a chart, program or file.' }),
    version: Type.String({ description: 'Version of a chart or program.' }),
    sizeBytes: Type.Integer({ description: 'Size of its blobs, each counted once.' }),
    platforms: Type.Array(
      Type.Object({
        os: Type.String(),
        architecture: Type.String(),
        variant: Type.Optional(Type.String()),
        digest: Type.String(),
        isCarried: Type.Boolean({ description: 'Whether the bundle carries it.' }),
      }),
    ),
    createdAt: Type.Optional(Type.String({ format: 'date-time' })),
    files: Type.Optional(
      Type.Array(Type.Object({ title: Type.String(), digest: Type.String(), sizeBytes: Type.Integer() })),
    ),
  },
  { title: 'BundleEntry' },
)
export type BundleEntry = Static<typeof BundleEntry>

export const BundleDeletion = Type.Object(
  {
    uid: Type.String(),
    name: Type.String(),
    entries: Type.Integer({ description: 'Images, charts, programs and files that no other bundle has.' }),
    blobs: Type.Integer({ description: 'Blobs that no other bundle has.' }),
    sizeBytes: Type.Integer({
      description: 'Their size. A running upload that has linked some keeps these.',
    }),
    holders: Type.Array(Type.String(), {
      description: 'Holders that need the bundle; with any, it is not deleted.',
    }),
  },
  { title: 'BundleDeletion' },
)
export type BundleDeletion = Static<typeof BundleDeletion>

export const ContentUsage = Type.Object(
  {
    bundles: Type.Integer({ description: 'Published bundles.' }),
    bundleBytes: Type.Integer({ description: 'Sum of their sizes.' }),
    storedBytes: Type.Integer({ description: 'Disk usage of their blobs, equal ones once.' }),
    sharedBytes: Type.Integer({ description: 'Bytes saved because bundles share blobs.' }),
    uploadBytes: Type.Integer({
      description:
        'Disk usage of unfinished uploads, without blobs of bundles; with more than 1,000 files up to a minute old.',
    }),
    damagedBlobs: Type.Integer(),
    damagedBytes: Type.Integer(),
    isComplete: Type.Boolean({
      description:
        'False while the record of a bundle is damaged: then no content is removed, see the journal.',
    }),
    fileSystem: Type.Object({
      directory: Type.String({ description: 'Folder of the content.' }),
      mountPoint: Type.String({ description: 'Mount point of its file system.' }),
      type: Type.String({ description: 'For example ext4.' }),
      totalBytes: Type.Integer(),
      freeBytes: Type.Integer(),
      reserveBytes: Type.Integer({ description: 'Bytes that uploads leave free.' }),
      reservedBytes: Type.Integer({ description: 'Bytes that running uploads still need.' }),
      availableBytes: Type.Integer({ description: 'Bytes that a new upload may use.' }),
    }),
  },
  { title: 'ContentUsage' },
)
export type ContentUsage = Static<typeof ContentUsage>

export const UploadedContentDetails = Type.Object(
  {
    fileName: Type.String({
      description: 'Name of the uploaded file; of an upload blob by blob, the name of the bundle.',
    }),
    sha256Hash: Type.String({
      description: 'Hash of the uploaded file, hex; of an upload blob by blob, of index.json.',
    }),
    sizeInBytes: Type.Integer(),
    sizeInMiB: Type.Number(),
    sizeInGiB: Type.Number(),
    uploadDateTime: Type.String({ format: 'date-time' }),
  },
  { title: 'UploadedContentDetails' },
)
export type UploadedContentDetails = Static<typeof UploadedContentDetails>

export const ContentUpload = Type.Object(
  {
    uid: Uid,
    kind: Type.Enum(['file', 'blobs'], {
      description: 'file: one file, which is unpacked while it arrives; blobs: blob by blob, resumable.',
    }),
    name: Type.String({ description: 'As the client calls it; may be empty.' }),
    phase: Type.Enum(['receiving', 'checking', 'publishing'], {
      description:
        'checking: its manifests are examined, or received bytes are read again after a restart of the host.',
    }),
    receivedBytes: Type.Integer({
      description:
        'Of a file: bytes that have arrived; blob by blob: bytes that the host has, also from other bundles.',
    }),
    totalBytes: Type.Optional(
      Type.Integer({ description: 'Blob by blob it grows while manifests arrive; absent if not known.' }),
    ),
    missingBytes: Type.Optional(Type.Integer({ description: 'Bytes still to come, as far as known.' })),
    startedAt: Type.String({ format: 'date-time' }),
    lastActivityAt: Type.String({ format: 'date-time' }),
    remainingSeconds: Type.Optional(
      Type.Integer({ description: 'At the pace of the last half minute; absent while that is not known.' }),
    ),
  },
  { title: 'ContentUpload' },
)
export type ContentUpload = Static<typeof ContentUpload>

export const ContentUploadBegun = Type.Object(
  {
    uid: Type.String({ description: 'Uid of the upload; of the bundle, if it is published.' }),
    message: Type.String(),
    isPublished: Type.Boolean({
      description:
        'Whether the host has the bundle already, with all that it names, so nothing is to be sent.',
    }),
  },
  { title: 'ContentUploadBegun' },
)
export type ContentUploadBegun = Static<typeof ContentUploadBegun>

export const MissingContentBlob = Type.Object(
  {
    digest: Type.String(),
    sizeBytes: Type.Integer(),
    heldBytes: Type.Integer({ description: 'Bytes that the host has: the offset of the next PATCH.' }),
    isManifest: Type.Boolean({
      description: 'An index or a manifest, which names further blobs; send these first.',
    }),
    isOptional: Type.Boolean({
      description:
        'Whether the bundle may be published without it, as without the image for another platform.',
    }),
  },
  { title: 'MissingContentBlob' },
)
export type MissingContentBlob = Static<typeof MissingContentBlob>

export const ContentUploaded = Type.Object(
  {
    message: Type.String(),
    uploadPath: Type.String({ description: 'The record of the bundle on the host.' }),
    uid: Type.String({ description: 'Uid of the bundle.' }),
  },
  { title: 'ContentUploaded' },
)
export type ContentUploaded = Static<typeof ContentUploaded>

export const ContentRegistry = Type.Object(
  {
    isEnabled: Type.Boolean({ description: 'Whether the configuration has the registry switched on.' }),
    address: Type.String({ description: 'The address on which it listens.' }),
    port: Type.Integer(),
    isTls: Type.Boolean({ description: 'False only on a loopback address.' }),
    isAnonymous: Type.Boolean({ description: 'Whether it answers without a password.' }),
    isListening: Type.Boolean(),
    problem: Type.Optional(Type.String({ description: 'Why it does not listen, and what to do.' })),
    username: Type.String({ description: 'The user name that goes with the password.' }),
    hosts: Type.Array(Type.String(), {
      description: 'Registries that the names of its images are of, for example docker.io.',
    }),
    certificate: Type.Optional(
      Type.String({ description: 'With TLS: the certificate that clients have to trust, PEM.' }),
    ),
  },
  { title: 'ContentRegistry' },
)
export type ContentRegistry = Static<typeof ContentRegistry>

export const ContentRegistryPassword = Type.Object(
  { username: Type.String(), password: Type.String() },
  { title: 'ContentRegistryPassword' },
)
export type ContentRegistryPassword = Static<typeof ContentRegistryPassword>

export const RegistryHealthDetails = Type.Object(
  {
    State: Type.Enum(['Healthy', 'Unhealthy', 'NotInstalled'], {
      description: 'NotInstalled: the configuration of the host has the registry switched off.',
    }),
    Message: Type.String({ description: 'Address of the registry, or its problem and what to do.' }),
    DiskCapacity: Type.Optional(
      Type.String({
        description:
          'Of the file system of the content, for example 58.2 GiB. The sizes are absent while it cannot be read.',
      }),
    ),
    DiskUsed: Type.Optional(Type.String()),
    DiskAvailable: Type.Optional(Type.String()),
    UsagePercentage: Type.Optional(Type.String({ description: 'For example 42%.' })),
  },
  { title: 'RegistryHealthDetails' },
)
export type RegistryHealthDetails = Static<typeof RegistryHealthDetails>

const ContentType = Type.Enum(['image', 'artifact', 'chart', 'pack'])

export const RegistryContentDetails = Type.Object(
  {
    name: Type.String({
      description: 'Of an image with its registry; of a chart, program or file its title; else the digest.',
    }),
    version: Type.String({
      description: 'The tag, or the version of a chart or program; else the digest.',
    }),
    contentType: ContentType,
    size: Type.String({ description: 'Size of its blobs, each counted once, for example 4.2 MiB.' }),
    dateAdded: Type.String({ format: 'date-time' }),
  },
  { title: 'RegistryContentDetails' },
)
export type RegistryContentDetails = Static<typeof RegistryContentDetails>

export const RegistryContentsDetails = Type.Object(
  { status: Type.Array(RegistryContentDetails) },
  { title: 'RegistryContentsDetails' },
)

const RegistryContentSyncStatus = Type.Object(
  {
    name: Type.Optional(Type.String()),
    version: Type.Optional(Type.String()),
    contentType: Type.Optional(ContentType),
    size: Type.Optional(Type.String()),
    source: Type.Optional(Type.String()),
    target: Type.Optional(Type.String()),
    status: Type.Optional(Type.Enum(['pending', 'completed', 'failed'])),
    msg: Type.Optional(Type.String()),
    creationTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
    lastSyncTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
  },
  { title: 'RegistryContentSyncStatus' },
)

export const RegistryContentsSyncStatus = Type.Object(
  {
    statusMessage: Type.String(),
    pendingItems: Type.Array(RegistryContentSyncStatus, {
      description: 'Content that is still to be copied to another host.',
    }),
    errors: Type.Record(Type.String(), Type.String()),
  },
  { title: 'RegistryContentsSyncStatus' },
)
