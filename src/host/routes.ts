import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { matchesEtag } from '../api/etag.ts'
import { errorReplies, notModified } from '../api/schemas.ts'
import { EdgeHostInfo, HostUsage, Settings } from './schemas.ts'
import type { Snapshot, SnapshotReply } from './snapshot.ts'

export interface HostRoutesOptions {
  readonly snapshot: Pick<Snapshot, 'current' | 'firstReading' | 'refresh'>
  readonly usage: () => Promise<HostUsage>
  readonly settings: Settings
}

/** Facts of this host: `/v1/edge-mgmt/edgehosts/current` and `/v1/edge-mgmt/settings`. */
export const hostRoutes: FastifyPluginAsyncTypebox<HostRoutesOptions> = async (app, options) => {
  const { snapshot, usage, settings } = options

  app.get(
    '/v1/edge-mgmt/edgehosts/current',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getCurrentEdgeHost',
        tags: ['edgehosts'],
        summary: 'Facts of this host: hardware, operating system, network',
        description:
          'Send the ETag of the reply you hold in If-None-Match to get 304 until something changes.',
        querystring: Type.Object({
          refresh: Type.Optional(
            Type.Boolean({ description: 'Read the facts of the machine again before the reply.' }),
          ),
        }),
        response: {
          200: EdgeHostInfo,
          ...notModified,
          ...errorReplies(400, 401),
        },
      },
    },
    // Not async: clients poll this reply, and a promise costs it a fiftieth of its throughput.
    (request, reply) => {
      const answer = () => void send(request, reply, snapshot.current())
      if (request.query.refresh === true) sendAfter(snapshot.refresh('all'), reply, answer)
      else if (snapshot.current() === undefined) sendAfter(snapshot.firstReading(), reply, answer)
      else answer()
    },
  )

  app.get(
    '/v1/edge-mgmt/edgehosts/current/usage',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getCurrentEdgeHostUsage',
        tags: ['edgehosts'],
        summary: 'What this host is doing: uptime, load, memory, clock, space, state of the links',
        description: 'What moves all the time is not in the facts of the host, so that their ETag stays.',
        response: { 200: HostUsage, ...errorReplies(401) },
      },
    },
    async () => usage(),
  )

  app.get(
    '/v1/edge-mgmt/settings',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getSettings',
        tags: ['edgehosts'],
        summary: 'How this host is installed and managed',
        response: { 200: Settings, ...errorReplies(401) },
      },
    },
    async () => settings,
  )
}

/** No caller waits for this promise, so an error on the way has to become the reply here. */
function sendAfter(look: Promise<void>, reply: FastifyReply, answer: () => void) {
  look.then(answer).catch((error: unknown) => void reply.send(error))
}

/** Text goes out as it is: Fastify serialises objects only. */
function send(request: FastifyRequest, reply: FastifyReply, current: SnapshotReply | undefined) {
  if (current === undefined) throw new Error('the facts of the host were read, but there is no reply')
  void reply.header('etag', current.etag)
  if (matchesEtag(request, current.etag)) return reply.code(304).send()
  return reply.header('content-type', 'application/json; charset=utf-8').send(current.body)
}
