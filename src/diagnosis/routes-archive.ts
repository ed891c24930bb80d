import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { callerOf } from '../api/guard.ts'
import { errorReplies, notModified } from '../api/schemas.ts'
import { attachment, sendOpened } from '../api/send-file.ts'
import { LogsAccepted, LogsStatus } from './schemas.ts'
import type { SupportArchive } from './support-archive.ts'

interface ArchiveRoutesOptions {
  readonly archive: Pick<SupportArchive, 'generate' | 'status' | 'open'>
}

const host = '/v1/edge-mgmt/edgehosts/current'
const tags = ['diagnosis']
const tar = {
  content: { 'application/x-tar': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) } },
}

/** The support archive: generate, poll, download. */
export const archiveRoutes: FastifyPluginAsyncTypebox<ArchiveRoutesOptions> = async (app, { archive }) => {
  app.post(
    `${host}/generate-logs`,
    {
      config: {
        access: 'admin',
        servedInReset: true,
        audit: { action: 'action', kind: 'logs', changes: 'an archive is made of what is there' },
      },
      schema: {
        operationId: 'generateLogs',
        tags,
        summary: 'Generate the support archive of this host, for administrators',
        description:
          'As edgehostctl support makes it, with secrets masked; an earlier one is removed. While one is being made, the reply has its uid. generate-logs-status says when it is ready.',
        response: {
          202: { ...LogsAccepted, headers: { location: { type: 'string', description: 'Of its status.' } } },
          ...errorReplies(401, 403, 507),
        },
      },
    },
    async (request, reply) => {
      const { uid, isNew } = await archive.generate(callerOf(request))
      request.auditResource = { uid }
      return reply
        .code(202)
        .header('location', `${host}/generate-logs-status`)
        .send({
          message: isNew ? 'the archive is being made' : 'an archive is being made already: this one',
          uid,
        })
    },
  )

  app.get(
    `${host}/generate-logs-status`,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getGenerateLogsStatus',
        tags,
        summary: 'The state of the support archive of this host, for administrators',
        response: { 200: LogsStatus, ...errorReplies(401, 403) },
      },
    },
    async () => archive.status(),
  )

  app.get(
    `${host}/download-logs`,
    {
      exposeHeadRoute: false,
      config: { access: 'admin', ticket: true, audit: { action: 'activity', kind: 'logs' } },
      schema: {
        operationId: 'downloadLogs',
        tags,
        summary: 'Download the generated support archive, for administrators',
        description:
          'It is kept until the next one is generated, at most diagnosis.archive.keptHours. A download that stopped continues with Range and If-Range.',
        response: {
          200: { description: 'A tar archive.', ...tar },
          206: { description: 'A part of it.', ...tar },
          ...notModified,
          ...errorReplies(401, 403, 404, 416),
        },
      },
    },
    async (request, reply) => {
      const { file, sizeBytes, uid, name } = await archive.open()
      request.auditResource = { uid }
      return sendOpened(request, reply, file, {
        etag: `"${uid}"`,
        sizeBytes,
        headers: { 'content-type': 'application/x-tar', 'content-disposition': attachment(name) },
      })
    },
  )
}
