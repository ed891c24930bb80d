import { documentPath } from '../base/program.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the content of this host. */
export const contentErrors = defineErrors({
  ContentInUse: {
    status: 409,
    meaning:
      'The bundle cannot be deleted, because something on this host needs it; details.holders names it.',
    action: 'Stop what needs it, then delete the bundle again.',
  },
  ContentUnavailable: {
    status: 503,
    meaning: 'The folder of the content cannot be read or written.',
    action: `See journalctl -u edgehostd -p warning and ${documentPath('operations.md')}, "Content"; the next request tries again.`,
  },
  BlobBusy: {
    status: 409,
    meaning: 'Another request is sending the same blob to the same upload.',
    action: 'Wait until it has ended; one whose connection is gone ends after a while.',
  },
  BlobsMissing: {
    status: 409,
    meaning:
      'The upload cannot be published: blobs are missing. details.missing lists the first of them, details.missingBlobs and details.missingBytes count all.',
    action: 'Send what GET /v1/edge-mgmt/content/uploads/{uid}/missing lists, then publish again.',
  },
  DigestMismatch: {
    status: 400,
    meaning: 'The bytes of a blob do not have its digest; those that were held have been thrown away.',
    action: 'Send the blob again from its beginning; if this happens again, check the file with sha256sum.',
  },
  UploadBusy: {
    status: 409,
    meaning: 'The upload is being published.',
    action: 'Wait until that has ended.',
  },
  WrongOffset: {
    status: 416,
    meaning:
      'The range does not begin where the held bytes of the blob end. The header Upload-Offset and details.offset give that offset.',
    action: 'Send the blob from that offset on.',
  },
})

/** Refusals of bundles: docs/bundle-format.md. */
export const bundleErrors = defineErrors({
  BundleInvalid: {
    status: 400,
    meaning:
      'A part of the bundle breaks a rule; details.place names the file or blob and the field, details.reason the rule.',
    action: `Correct the named part and build the bundle again, for example with edgehostctl content build; ${documentPath('bundle-format.md')} explains the rules.`,
  },
  BundleIncomplete: {
    status: 400,
    meaning:
      'The bundle lacks blobs that it needs; details.missing lists the first of them, details.missingCount says how many there are.',
    action:
      'Pull the images again with all their layers and build the bundle again; edgehostctl content inspect FILE checks it on any machine.',
  },
  BundleTooLarge: {
    status: 400,
    meaning:
      'The bundle exceeds a limit; details.reason and details.place name it. Layers and files have no limit but the disk.',
    action: 'Split the bundle.',
  },
})

/** Errors of the registry, in the words of the OCI distribution specification, which writes them BLOB_UNKNOWN. */
export const registryErrors = defineErrors({
  BlobUnknown: {
    status: 404,
    meaning: 'No bundle of this host has the blob, or it is damaged on the disk; the message says which.',
    action: 'Upload a bundle that has it.',
  },
  ManifestUnknown: {
    status: 404,
    meaning: 'The host has the image, chart or artifact, but not with this tag, or not with this digest.',
    action: 'See edgehostctl content list, or upload a bundle that has it.',
  },
  NameUnknown: {
    status: 404,
    meaning: 'No bundle of this host has an image, chart or artifact of this name.',
    action: 'See edgehostctl content list, or upload a bundle that has it.',
  },
  NameInvalid: {
    status: 400,
    meaning: 'The name in the path is not the name of a repository.',
    action: 'Correct the name: small letters and digits, separated by /, ., _ and -.',
  },
  DigestInvalid: {
    status: 400,
    meaning: 'The digest in the path is not one.',
    action: 'Correct the digest: sha256: and 64 hexadecimal digits in lower case.',
  },
  PaginationNumberInvalid: {
    status: 400,
    meaning: 'The parameter n of a list is not a whole number.',
    action: 'Correct n, or leave it out.',
  },
})
