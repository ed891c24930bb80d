import { join } from 'node:path'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../../api/schemas.ts'
import { formParts } from '../../upload/form-parts.ts'
import { addMultipart, formSchema } from '../../upload/multipart.ts'
import { uploadField } from '../../upload/receive.ts'
import { ContentUploaded } from '../schemas.ts'
import type { Bundle, ContentStore } from '../store/content-store.ts'
import type { FileUploads } from '../uploads/file-uploads.ts'

export interface UploadContentRoutesOptions {
  readonly fileUploads: FileUploads
  readonly store: ContentStore
}

/** Path of the record of a published bundle on the host. */
export const recordPathOf = ({ folder }: ContentStore, { uid }: Bundle): string =>
  join(folder, 'bundles', `${uid}.jsonl`)

/** The upload of a bundle as one file: `…/actions/upload-content`. */
export const uploadContentRoutes: FastifyPluginAsyncTypebox<UploadContentRoutesOptions> = async (
  app,
  { fileUploads, store },
) => {
  await addMultipart(app, async (scope) => {
    scope.post(
      '/v1/edge-mgmt/edgehosts/current/actions/upload-content',
      {
        config: { access: 'admin', audit: { action: 'create', kind: 'bundle' } },
        schema: {
          operationId: 'uploadContent',
          tags: ['content'],
          summary: 'Upload a bundle of content as one file',
          description:
            'The bundle is unpacked while it arrives, and published when it is whole; an invalid one may be refused before its end. The status is 200, and nothing is written, if the host has the bundle already. An upload of a file cannot be continued: POST /v1/edge-mgmt/content/uploads begins one that can.',
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
        const length = request.headers['content-length']
        const { bundle, isNew } = await fileUploads.receive({
          parts: (signal) => formParts(request, uploadField, signal),
          expectedBytes: length === undefined ? undefined : Number(length),
          signal: request.sessionEnd,
          // No bytes move on the connection while the rest is checked. With a listener for 'timeout', Node does not close it.
          onReceived: () => void reply.raw.on('timeout', () => undefined),
        })
        const { uid, name } = bundle
        request.auditResource = { name, uid }
        return reply.code(isNew ? 201 : 200).send({
          ...{ uid, uploadPath: recordPathOf(store, bundle) },
          message: isNew ? `the bundle ${name} is published` : `the host has the bundle ${name} already`,
        })
      },
    )
  })
}
