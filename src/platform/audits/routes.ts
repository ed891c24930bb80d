import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../../api/schemas.ts'
import { trailPlugin, type TrailOptions } from '../../audit/routes.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { auditList, boundOf, type Audits } from './audits.ts'
import { Audit, AuditsQuery } from './schemas.ts'

export interface AuditRoutesOptions extends Pick<TrailOptions, 'now'> {
  readonly audits: Audits
  readonly access: TrailOptions['audits']
  readonly listTokens: ContinueTokens
}

const path = '/v1/audits'

/** The audit trail: `/v1/audits…`, for administrators of the tenant, since it has names and addresses of other users. */
export const auditRoutes: FastifyPluginAsyncTypebox<AuditRoutesOptions> = async (
  app,
  { audits, access, listTokens, now },
) => {
  app.get(
    path,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listAudits',
        tags: ['audits'],
        summary: 'List audit records, the newest first',
        querystring: Type.Object({ ...listParameters(auditList).properties, ...AuditsQuery.properties }),
        response: { 200: listOf(Audit), ...errorReplies(400, 401, 403, 404, 503) },
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

  await trailPlugin(app, { audits: access, path, now })
}
