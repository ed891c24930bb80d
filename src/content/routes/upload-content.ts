import { join } from 'node:path'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { callerOf } from '../../api/guard.ts'
import { keepOpen } from '../../api/keep-open.ts'
import { errorReplies } from '../../api/schemas.ts'
import { formParts } from '../../upload/form-parts.ts'
import { addMultipart, formSchema } from '../../upload/multipart.ts'
import { uploadField } from '../../upload/receive.ts'
import { ContentUploaded } from '../schemas.ts'
import type { ContentStore, Published } from '../store/content-store.ts'
import type { FileUploads } from '../uploads/file-uploads.ts'

export interface UploadContentRoutesOptions {
  readonly fileUploads: FileUploads
  readonly store: ContentStore
}

/** The reply to an upload that was published. */
export function showPublished({ folder }: ContentStore, published: Published): ContentUploaded {
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
            'The bundle is unpacked while it arrives, and published when it is whole; an invalid one may be refused before its end. The status is 200 if the host has a bundle with the same index.json: what the upload has more, as the image for another platform, is added to it; otherwise nothing is written. An upload of a file cannot be continued: POST /v1/edge-mgmt/content/uploads begins one that can.',
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
            ...errorReplies(400, 401, 403, 408, 413, 415, 503, 507),
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
