import { type MemoryField, listInMemory } from '../lists/memory.ts'
import type { ListResource } from '../lists/resource.ts'
import { ContentUpload, ContentUploaded, ContentUploadBegun } from './schemas.ts'
import type { RunningUpload } from './uploads/upload-note.ts'
import { join } from 'node:path'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { callerOf } from '../api/guard.ts'
import { keepOpen } from '../api/request-end.ts'
import { errorReplies, NoContent } from '../api/schemas.ts'
import { formParts, addMultipart, formSchema } from '../upload/multipart.ts'
import { uploadField } from '../upload/receive.ts'
import type { ContentStore, Published } from './store/content-store.ts'
import type { FileUploads } from './uploads/file-uploads.ts'
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Uid, uidOf } from '../base/uid.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import { listOf } from '../lists/page.ts'
import { listParameters, parseListQuery } from '../lists/query.ts'
import { addRawBodies } from '../upload/raw-body.ts'
import type { RunningUploads } from '../upload/running.ts'
import type { SigningKey } from '../upload/signing.ts'
import { contentErrors } from './codes.ts'
import type { MissingBlob } from './uploads/blob-upload.ts'
import { type BlobUploads, indexField, receiveIndex } from './uploads/blob-uploads.ts'
import { parseContentRange } from './uploads/part.ts'

/** Fields for queries of the list of uploads. */
const uploadList: ListResource<MemoryField<RunningUpload>> = {
  name: 'content-uploads',
  key: 'uid',
  fields: {
    uid: { type: 'text', read: ({ uid }) => uid },
    kind: { type: 'text', read: ({ kind }) => kind },
    name: { type: 'text', read: ({ name }) => name },
    phase: { type: 'text', read: ({ phase }) => phase },
    startedAt: { type: 'time', read: ({ startedAt }) => startedAt },
    lastActivityAt: { type: 'time', read: ({ lastActivityAt }) => lastActivityAt },
  },
  // Not by the last activity: an upload that is under way while a client pages would be missed.
  defaultOrder: [{ path: 'startedAt', direction: -1 }],
  item: ContentUpload,
}

/** An upload as the API shows it. */
export function showUpload(upload: RunningUpload): ContentUpload {
  const { uid, kind, name, phase, receivedBytes, totalBytes, missingBytes, remainingSeconds } = upload
  return {
    uid,
    kind,
    name,
    phase,
    receivedBytes,
    ...(totalBytes === undefined ? {} : { totalBytes }),
    ...(missingBytes === undefined ? {} : { missingBytes }),
    startedAt: new Date(upload.startedAt).toISOString(),
    lastActivityAt: new Date(upload.lastActivityAt).toISOString(),
    ...(remainingSeconds === undefined ? {} : { remainingSeconds }),
  }
}

interface UploadContentRoutesOptions {
  readonly fileUploads: FileUploads
  readonly store: ContentStore
}

/** The reply to an upload that was published. */
function showPublished({ folder }: ContentStore, published: Published): ContentUploaded {
  const { uid } = published.bundle
  return { uid, message: messageOf(published), uploadPath: join(folder, 'bundles', `${uid}.jsonl`) }
}

function messageOf({ bundle: { name }, isNew, addedBlobs, damagedBlobs }: Published): string {
  if (isNew) return `the bundle ${name} is published`
  if (damagedBlobs > 0)
    return `the host has the bundle ${name}, and ${damagedBlobs} of its blobs are damaged; upload a bundle that has them`
  if (addedBlobs > 0)
    return `the host has the bundle ${name} already; ${addedBlobs} blobs that it lacked were added to it`
  return `the host has the bundle ${name} already`
}

/** The upload of a bundle as one file: `…/actions/upload-content`. */
export const uploadContentRoutes: FastifyPluginAsyncTypebox<UploadContentRoutesOptions> = async (
  app,
  { fileUploads, store },
) => {
  await addMultipart(app, async (scope) => {
    scope.post(
      '/v1/edge-mgmt/edgehosts/current/actions/upload-content',
      {
        config: {
          access: 'admin',
          audit: { action: 'create', kind: 'bundle', changes: 'the record names the bundle that came' },
        },
        schema: {
          operationId: 'uploadContent',
          tags: ['content'],
          summary: 'Upload a bundle of content as one file',
          description:
            'The bundle is unpacked while it arrives, and published when it is whole; an invalid one may be refused before its end. The status is 200 if the host has a bundle with the same index.json: further blobs, as the image for another platform, are added to it; otherwise nothing is written. An upload of a file cannot be continued: POST /v1/edge-mgmt/content/uploads begins one that can.',
          ...formSchema(
            {
              uploadFile: 'The bundle, an OCI image layout as .tar, .tar.gz or .tar.zst.',
              signature:
                'Required if the host has a signing key: the detached signature of the file, SHA-256 with RSA or ECDSA, as bytes, hex or base64.',
            },
            [uploadField],
          ),
          response: {
            200: ContentUploaded,
            201: ContentUploaded,
            ...errorReplies(400, 401, 403, 408, 409, 413, 415, 503, 507),
          },
        },
      },
      async (request, reply) => {
        keepOpen(reply)
        const length = request.headers['content-length']
        const published = await fileUploads.receive({
          parts: (signal) => formParts(request, uploadField, signal),
          expectedBytes: length === undefined ? undefined : Number(length),
          uploader: { name: callerOf(request).userName, signal: request.sessionEnd },
        })
        request.auditResource = { name: published.bundle.name, uid: published.bundle.uid }
        return reply.code(published.isNew ? 201 : 200).send(showPublished(store, published))
      },
    )
  })
}

interface UploadsRoutesOptions {
  readonly blobUploads: BlobUploads
  readonly fileUploads: FileUploads
  /** Each holds its index.json in memory. */
  readonly beginning: RunningUploads
  readonly store: ContentStore
  readonly signingKey: SigningKey | undefined
  readonly listTokens: ContinueTokens
}

const path = '/v1/edge-mgmt/content/uploads'
const tags = ['content']
const kind = 'content-upload'
const linesAtOnce = 500
const Appended = Type.Null({
  description: 'No content',
  headers: { 'Upload-Offset': { type: 'integer', description: 'Bytes that the host has of the blob now.' } },
})
/** Sent bytes of an upload change nothing of the host before it is published. */
const changes = 'the record names the upload, or the bundle that came of it'
const audited = (action: 'create' | 'action' | 'delete') => ({
  action,
  kind,
  changes,
  resource: ({ params }: { params: unknown }) => ({ uid: uidOf((params as { uid?: string }).uid) }),
})

/** Uploads of content, blob by blob and resumable: `/v1/edge-mgmt/content/uploads`. */
export const uploadsRoutes: FastifyPluginAsyncTypebox<UploadsRoutesOptions> = async (app, options) => {
  const { blobUploads, fileUploads, beginning, store, signingKey, listTokens } = options
  // The bundle of an upload never changes; its list of missing blobs gives the bytes that are there.
  const writable = (request: FastifyRequest) => (request.params as { readonly uid: string }).uid
  const listAll = async () => [...(await blobUploads.list()), ...fileUploads.list()]

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listContentUploads',
        tags,
        summary: 'List the uploads of content that are not finished, files too',
        querystring: listParameters(uploadList),
        response: { 200: listOf(ContentUpload), ...errorReplies(400, 401, 503) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, uploadList, { tokens: listTokens })
      return listInMemory(await listAll(), query, uploadList, showUpload)
    },
  )

  app.get(
    `${path}/:uid`,
    {
      config: { writable, access: 'viewer' },
      schema: {
        operationId: 'getContentUpload',
        tags,
        summary: 'Show an upload of content that is not finished',
        params: Type.Object({ uid: Uid }),
        response: { 200: ContentUpload, ...errorReplies(400, 401, 404, 503) },
      },
    },
    async ({ params: { uid } }) => {
      const upload = (await listAll()).find((each) => each.uid === uid)
      if (!upload) throw new AppError(generalErrors.NotFound, 'there is no such upload')
      return showUpload(upload)
    },
  )

  app.get(
    `${path}/:uid/missing`,
    {
      config: { access: 'viewer', bucket: 'blobs' },
      schema: {
        operationId: 'listMissingContentBlobs',
        tags,
        summary: 'The blobs that are still to be sent, manifests first',
        description:
          'JSON lines, each a MissingContentBlob. Manifests name further blobs: send those that are missing, then ask again, until no blob is missing that you have.',
        params: Type.Object({ uid: Uid }),
        produces: ['application/jsonl'],
        response: { 200: Type.String(), ...errorReplies(400, 401, 404, 503) },
      },
    },
    async ({ params: { uid } }, reply) => {
      const lines = Readable.from(linesOf(await blobUploads.missing(uid)), { objectMode: false })
      return reply.type('application/jsonl; charset=utf-8').send(lines as never)
    },
  )

  app.post(
    `${path}/:uid/actions/publish`,
    {
      config: { access: 'admin', audit: audited('action') },
      schema: {
        operationId: 'publishContentUpload',
        tags,
        summary: 'Publish an uploaded bundle',
        description:
          'The status is 200 if a bundle with the same index.json was published before: further blobs, as the image for another platform, are added to it, and uid names this bundle.',
        params: Type.Object({ uid: Uid }),
        response: {
          200: ContentUploaded,
          201: ContentUploaded,
          ...errorReplies(400, 401, 403, 404, 409, 503, 507),
        },
      },
    },
    async (request, reply) => {
      const published = await blobUploads.publish(request.params.uid, request.sessionEnd)
      request.auditResource = { name: published.bundle.name, uid: published.bundle.uid }
      return reply.code(published.isNew ? 201 : 200).send(showPublished(store, published))
    },
  )

  app.delete(
    `${path}/:uid`,
    {
      config: { writable, access: 'admin', audit: audited('delete') },
      schema: {
        operationId: 'deleteContentUpload',
        tags,
        summary: 'Throw an unfinished upload away',
        params: Type.Object({ uid: Uid }),
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409, 503) },
      },
    },
    async ({ params: { uid }, sessionEnd }, reply) => {
      await blobUploads.remove(uid, sessionEnd)
      return reply.code(204).send(null)
    },
  )

  await addMultipart(app, async (scope) => {
    scope.post(
      path,
      {
        config: { access: 'admin', audit: { action: 'create', kind, changes } },
        schema: {
          operationId: 'beginContentUpload',
          tags,
          summary: 'Begin or continue an upload of a bundle, blob by blob',
          description:
            'The digest of index.json is the identity of the bundle. If an upload of it is unfinished, or a bundle that has all that it names is published, the status is 200 and uid names the upload or the bundle. A published bundle without the image of a platform may be uploaded again with that: then only this is missing, and optional.',
          ...formSchema(
            {
              index: 'The bytes of the index.json of the bundle.',
              name: 'What the bundle is called in lists.',
              signature:
                'Required if the host has a signing key: the detached signature of index.json, SHA-256 with RSA or ECDSA, as bytes, hex or base64.',
            },
            [indexField],
          ),
          response: {
            200: ContentUploadBegun,
            201: ContentUploadBegun,
            ...errorReplies(400, 401, 403, 408, 409, 413, 415, 503, 507),
          },
        },
      },
      async (request, reply) => {
        keepOpen(reply)
        const { uid, name, isNew, isPublished } = await beginning.run(
          { name: callerOf(request).userName, signal: request.sessionEnd },
          async ({ signal }) => {
            const posted = await receiveIndex(formParts(request, indexField, signal), signingKey)
            return { ...(await blobUploads.begin(posted, signal)), name: posted.name }
          },
        )
        request.auditResource = { name, uid }
        const message = isPublished
          ? 'the host has this bundle already'
          : isNew
            ? 'the upload has begun; send what is missing'
            : 'the upload continues; send what is missing'
        return reply.code(isNew ? 201 : 200).send({ uid, message, isPublished })
      },
    )
  })

  await addRawBodies(app, async (scope) => {
    scope.patch(
      `${path}/:uid/blobs/:digest`,
      {
        // Nothing of the host changes before the upload is published, which is recorded.
        config: { access: 'admin', audit: false, bucket: 'blobs' },
        schema: {
          operationId: 'appendToContentBlob',
          tags,
          summary: 'Send bytes of a blob',
          description:
            'Appends the body to the held bytes of the blob. With the last byte the digest decides: if it differs, the held bytes are thrown away. The header Upload-Offset of the reply says how many bytes the host has, also with status 416.',
          consumes: ['application/octet-stream'],
          params: Type.Object({
            uid: Uid,
            digest: Type.String({
              pattern: '^sha256:[0-9a-f]{64}$',
              accepts: 'sha256: and 64 hexadecimal digits',
            }),
          }),
          headers: Type.Object({
            'content-range': Type.Optional(
              Type.String({ description: 'bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096; required.' }),
            ),
          }),
          response: {
            204: Appended,
            ...errorReplies(400, 401, 403, 404, 408, 409, 415, 416, 503, 507),
          },
        },
      },
      async (request, reply) => {
        const { uid, digest } = request.params as { uid: string; digest: string }
        const range = parseContentRange(request.headers['content-range'])
        const order = { uid, digest, range, body: request.raw, signal: request.sessionEnd }
        const heldBytes = await blobUploads.append(order).catch((error: unknown) => {
          const offset = error instanceof AppError && error.kind === contentErrors.WrongOffset
          if (offset) void reply.header('upload-offset', String(error.details?.offset))
          throw error
        })
        return reply.code(204).header('upload-offset', String(heldBytes)).send(null)
      },
    )
  })
}

/** Some lines at a time, so that each piece gives the event loop its turn. */
function* linesOf(blobs: Iterable<MissingBlob>): Generator<string> {
  let lines: string[] = []
  for (const blob of blobs) {
    if (lines.push(JSON.stringify(blob)) < linesAtOnce) continue
    yield `${lines.join('\n')}\n`
    lines = []
  }
  if (lines.length > 0) yield `${lines.join('\n')}\n`
}
