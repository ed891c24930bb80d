import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies, notModified } from '../api/schemas.ts'
import { attachment, sendOpened } from '../api/send-file.ts'
import type { OfferedFiles } from './files.ts'
import { FileMetadataList } from './schemas.ts'

interface FileRoutesOptions {
  readonly files: OfferedFiles
}

const path = '/v1/edge-mgmt/edgehosts/current/file-download'
const tags = ['diagnosis']
const bytes = {
  content: {
    'application/octet-stream': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) },
  },
}

/** Files that others put into a folder of this host for administrators. */
export const fileRoutes: FastifyPluginAsyncTypebox<FileRoutesOptions> = async (app, { files }) => {
  app.get(
    `${path}/files`,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listFiles',
        tags,
        summary: 'List the files of this host that may be downloaded, for administrators',
        description:
          'Regular files of the first level of diagnosis.filesDirectory in the configuration, by default /var/log/files.',
        response: { 200: FileMetadataList, ...errorReplies(401, 403, 404, 409) },
      },
    },
    async () => {
      const found = await files.list()
      return {
        files: found.files.map(({ name, sizeBytes, createdAt, modifiedAt }) => ({
          fileName: name,
          size: String(sizeBytes),
          creationTimestamp: new Date(createdAt).toISOString(),
          lastModifiedTimestamp: new Date(modifiedAt).toISOString(),
        })),
        ...(found.omitted > 0 ? { omitted: found.omitted } : {}),
      }
    },
  )

  app.get(
    `${path}/:filePath`,
    {
      // A core dump contains secrets of its program. A HEAD request would open the file too.
      exposeHeadRoute: false,
      config: { access: 'admin', ticket: true, audit: { action: 'activity', kind: 'file' } },
      schema: {
        operationId: 'downloadFile',
        tags,
        summary: 'Download a file of this host, for administrators',
        description:
          'A file that grows is sent up to its size at the beginning. A download that stopped continues with Range; with If-Range it begins again where the file has changed. A file that is named files cannot be downloaded.',
        params: Type.Object({ filePath: Type.String({ description: 'Its name, without folders.' }) }),
        response: {
          200: { description: 'The file.', ...bytes },
          206: { description: 'A part of it.', ...bytes },
          ...notModified,
          ...errorReplies(401, 403, 404, 409, 416),
        },
      },
    },
    async (request, reply) => {
      const { filePath: name } = request.params
      request.auditResource = { name }
      const { file, etag, sizeBytes, modifiedAt } = await files.open(name)
      return sendOpened(request, reply, file, {
        etag,
        sizeBytes,
        headers: {
          'content-type': 'application/octet-stream',
          'content-disposition': attachment(name),
          'last-modified': new Date(modifiedAt).toUTCString(),
        },
      })
    },
  )
}
