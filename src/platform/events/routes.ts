import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies } from '../../api/schemas.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { eventList, type Events } from './events.ts'
import type { HostParts } from '../hosts/hosts.ts'
import { BulkEvents, Event } from './schemas.ts'
import { CreatedUid } from '../schemas.ts'
import { scopeOf } from '../requests/scope.ts'

export interface EventRoutesOptions {
  readonly events: Events
  readonly findHost: HostParts['find']
  readonly listTokens: ContinueTokens
}

/** Events of hosts. */
export const eventRoutes: FastifyPluginAsyncTypebox<EventRoutesOptions> = async (
  app,
  { events, findHost, listTokens },
) => {
  const tags = ['events']

  app.post(
    '/v1/events/components/bulk',
    {
      config: { access: 'host', audit: false },
      schema: {
        operationId: 'createEvents',
        tags,
        summary: 'Report the events of a host; one that was reported before is left out',
        body: BulkEvents,
        response: { 201: Type.Array(CreatedUid), ...errorReplies(400, 401, 403) },
      },
    },
    async (request, reply) => {
      const host = findHost(callerOf(request).uid ?? '')
      if (!host) throw new AppError(generalErrors.Unauthenticated, 'this host was removed')
      return reply.code(201).send(events.add(host, request.body).map((uid) => ({ uid })))
    },
  )

  app.get(
    '/v1/events/components',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listEvents',
        tags,
        summary: 'List the events of the hosts of the scope, the newest first',
        querystring: listParameters(eventList),
        response: { 200: listOf(Event), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const query = parseListQuery(request.query, eventList, { tokens: listTokens, bound: [projectUid] })
      return events.list.page(query, events.inScope(projectUid))
    },
  )
}
