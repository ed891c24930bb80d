import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { sendEvents } from '../../api/event-stream.ts'
import { callerOf, mayUse } from '../../api/guard.ts'
import { errorReplies } from '../../api/schemas.ts'
import type { States } from '../../api/states.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters } from '../../lists/query.ts'
import type { StoredEventLog } from '../events/event-log.ts'
import type { ErrorLogs } from '../events/error-logs.ts'
import { eventList, type EventList } from '../events/event-list.ts'
import { viewOf } from '../events/event-list.ts'
import { lifecycleOf } from '../events/event-log.ts'
import { Event, EventSource, ErrorLogs as ErrorLogsReply, LifecycleEvents } from '../events/schemas.ts'

export interface EventRoutesOptions {
  readonly events: StoredEventLog
  readonly eventList: EventList
  readonly errorLogs: ErrorLogs
  readonly hostName: () => string
  readonly states: Pick<States, 'follow'>
}

const tags = ['cluster']

/** Events and conditions of the cluster, a stream of both, and the errors of this host. */
export const eventRoutes: FastifyPluginAsyncTypebox<EventRoutesOptions> = async (app, options) => {
  const { events, errorLogs, hostName, states } = options

  app.get(
    '/v1/edge-mgmt/cluster/events',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listClusterEvents',
        tags,
        summary: 'List the events of the cluster, of edgehostd and of Kubernetes',
        description:
          'The newest first. Events of edgehostd are kept when the cluster is deleted, within cluster.events of the configuration; events of Kubernetes are read from its API server for each request, and reach back an hour.',
        querystring: Type.Object({
          ...listParameters(eventList).properties,
          namespace: Type.Optional(
            Type.String({ maxLength: 63, description: 'Only events of objects in this namespace.' }),
          ),
        }),
        response: {
          200: Type.Object({ ...listOf(Event).properties, kubernetes: EventSource }),
          ...errorReplies(400, 401),
        },
      },
    },
    async ({ query: { namespace = '', ...query } }) => options.eventList.page(query, namespace),
  )

  app.get(
    '/v1/edge-mgmt/events/lifecycle',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getLifecycleEvents',
        tags,
        summary:
          'Progress of the cluster: its conditions, the conditions of this host, and the expected ones in order',
        description: 'docs/cluster-events.md lists all types and reasons.',
        response: { 200: LifecycleEvents, ...errorReplies(401) },
      },
    },
    () => lifecycleOf(events),
  )

  app.get(
    '/v1/edge-mgmt/events/stream',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'streamEvents',
        tags,
        summary: 'The events of the cluster as they come, as server-sent events',
        description:
          'The data of each is an event as in GET /v1/edge-mgmt/cluster/events, without events of Kubernetes; its id is metadata.number. A first connection gets the stored events of the newest cluster, and then new ones; one with the header Last-Event-ID gets later ones. The stream lasts until the session ends or edgehostd stops; its last event is then `end`, with an error as data. With states=true the stream also has messages of the types cluster, step, upload, content, host, network, link and platform, for which data is a StateMessage: all of them at the beginning of each connection, then each when it has changed, at most once a second. They have no id, and a client that reads slowly gets the newest alone. A comment comes every 5 seconds.',
        querystring: Type.Object({
          states: Type.Optional(
            Type.Boolean({
              default: false,
              description:
                'Whether states are sent too. Not by default: published clients take each message for an event.',
            }),
          ),
        }),
        headers: Type.Object({
          'last-event-id': Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: Number.MAX_SAFE_INTEGER,
              description: 'Id of the last event that was received.',
            }),
          ),
        }),
        response: {
          200: {
            description: 'Server-sent events.',
            content: { 'text/event-stream': { schema: Type.String() } },
          },
          ...errorReplies(400, 401, 503),
        },
      },
    },
    (request, reply) => {
      const since = request.headers['last-event-id'] ?? events.beforeNewestCluster()
      const { states: withStates = false } = request.query
      const caller = callerOf(request)
      void sendEvents(request, reply, async (stream) => {
        await Promise.all([
          events.follow(
            since,
            (event) => stream.send({ id: String(event.id), data: viewOf(event, hostName()) }),
            stream.signal,
          ),
          ...(withStates ? [states.follow(stream, (access) => mayUse(caller, access))] : []),
        ])
      })
    },
  )

  app.get(
    '/v1/edge-mgmt/edgehosts/current/error-logs',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listErrorLogs',
        tags,
        summary: 'The last errors of edgehostd, kubelet and containerd in the journal',
        description: 'The newest first, of the last seven days; as many as logCount says, without listmeta.',
        querystring: Type.Object({
          logCount: Type.Integer({ minimum: 1, maximum: 1_000, description: 'Most entries.' }),
        }),
        response: { 200: ErrorLogsReply, ...errorReplies(400, 401, 403, 503) },
      },
    },
    async ({ query }) => ({ items: [...(await errorLogs.last(query.logCount))] }),
  )
}
