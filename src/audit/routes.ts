import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { program } from '../base/program.ts'
import { errorReplies } from '../api/schemas.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import { listOf } from '../lists/page.ts'
import { listParameters, parseListQuery } from '../lists/query.ts'
import type { AuditAccess } from './access.ts'
import { hex, type AuditHead } from './record.ts'
import { Audit, AuditFilters, AuditsQuery, VerifyQuery, VerifyReply } from './schemas.ts'
import { auditList, boundOf } from './search.ts'

export interface TrailOptions {
  readonly audits: Pick<AuditAccess, 'verify' | 'unwritten' | 'download'>
  /** Path of the list. */
  readonly path: string
  /** Milliseconds since 1970, for the name of the archive. */
  readonly now: () => number
}

export interface AuditRoutesOptions extends Omit<TrailOptions, 'path'> {
  readonly audits: AuditAccess
  readonly listTokens: ContinueTokens
}

const tags = ['audits']

/**
 * The audit trail: `/v1/edge-mgmt/edgehosts/current/audits…`. For administrators only: it has names and addresses of
 * other users.
 */
export const auditRoutes: FastifyPluginAsyncTypebox<AuditRoutesOptions> = async (app, options) => {
  const { audits, listTokens, now } = options
  const path = '/v1/edge-mgmt/edgehosts/current/audits'

  app.get(
    path,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listAudits',
        tags,
        summary: 'List audit records, newest first',
        querystring: Type.Object({ ...listParameters(auditList).properties, ...AuditsQuery.properties }),
        response: { 200: listOf(Audit), ...errorReplies(400, 401, 403, 503) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, auditList, {
        tokens: listTokens,
        bound: boundOf(request.query),
      })
      return audits.page(query, request.query)
    },
  )

  app.get(
    `${path}/filters`,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getAuditFilters',
        tags,
        summary: 'List the values that audits can be filtered by',
        response: { 200: AuditFilters, ...errorReplies(401, 403) },
      },
    },
    async () => audits.filters(),
  )

  await trailPlugin(app, { audits, path, now })
}

/** Verification and download of the trail, below the path of its list; for the list of each program. */
export const trailPlugin: FastifyPluginAsyncTypebox<TrailOptions> = async (app, { audits, path, now }) => {
  // One verification at a time: each reads every record.
  let running: ReturnType<AuditAccess['verify']> | undefined
  const verify = async (expected: AuditHead | undefined) => {
    while (running) await running
    running = audits.verify(expected).finally(() => {
      running = undefined
    })
    return running
  }

  app.get(
    `${path}/verify`,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'verifyAudits',
        tags,
        summary: 'Verify that the audit trail is complete and unaltered',
        description: 'Takes up to a minute for a million records; other requests are answered meanwhile.',
        querystring: VerifyQuery,
        response: { 200: VerifyReply, ...errorReplies(400, 401, 403) },
      },
    },
    async (request) => {
      const { head, problem, ...found } = await verify(parseHead(request.query.head))
      return {
        ...found,
        head: { number: head.seq, hash: hex(head.hash) },
        unwritten: audits.unwritten(),
        ...(problem ? { problem: { number: problem.seq, message: problem.message } } : {}),
      }
    },
  )

  app.get(
    `${path}/download`,
    {
      // A HEAD request would read everything and discard it.
      exposeHeadRoute: false,
      config: { access: 'admin', ticket: true, audit: { action: 'activity', kind: 'audit' } },
      schema: {
        operationId: 'downloadAudits',
        tags,
        summary: 'The whole audit trail as a tar archive of NDJSON files',
        response: {
          200: {
            description: 'A tar archive.',
            content: { 'application/x-tar': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) } },
          },
          ...errorReplies(401, 403),
        },
      },
    },
    (_request, reply) => {
      const day = new Date(now()).toISOString().slice(0, 10)
      void reply
        .type('application/x-tar')
        .header('content-disposition', `attachment; filename="${program.daemon}-audit-${day}.tar"`)
        .send(audits.download())
    },
  )
}

function parseHead(text: string | undefined): AuditHead | undefined {
  if (!text) return undefined
  const [seq = '', hash = ''] = text.split(':')
  return { seq: Number(seq), hash: Buffer.from(hash, 'hex') }
}
