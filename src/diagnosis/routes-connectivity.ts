import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { callerOf } from '../api/guard.ts'
import { waitingEnd } from '../api/request-end.ts'
import { errorReplies } from '../api/schemas.ts'
import type { Check } from './check.ts'
import type { Connectivity, Question } from './connectivity.ts'
import { CheckKind, ConnectivityCheck, PingResponse, TraceRouteResponse } from './schemas.ts'
import { diagnosisMs } from './verbs.ts'

interface ConnectivityRoutesOptions {
  readonly connectivity: Pick<Connectivity, 'ping' | 'traceroute'>
  readonly check: Check
}

const path = '/v1/edge-mgmt/edgehosts/connectivity'
const tags = ['diagnosis']

const Family = Type.Optional(
  Type.Union([Type.Literal(4), Type.Literal(6)], {
    description: 'Only addresses of this version of IP; by default the first one of the name.',
  }),
)
const ProbeQuery = Type.Object({
  endpoint: Type.String({
    minLength: 1,
    maxLength: 300,
    description:
      'Address or name; a port is left out. A link-local address needs its interface: fe80::1%eth0.',
  }),
  structured: Type.Optional(
    Type.Boolean({ description: 'Whether the reply also has the output in fields.' }),
  ),
  family: Family,
})

/** Ping, traceroute, and checks of connections from this host. */
export const connectivityRoutes: FastifyPluginAsyncTypebox<ConnectivityRoutesOptions> = async (
  app,
  { connectivity, check },
) => {
  // They send packets: a HEAD request would too.
  const config = {
    access: 'admin' as const,
    audit: { action: 'action' as const, kind: 'connectivity' },
  }
  const bounds = (request: FastifyRequest, reply: FastifyReply) => ({
    caller: callerOf(request),
    signal: AbortSignal.any([waitingEnd(request, reply), AbortSignal.timeout(diagnosisMs)]),
  })
  const refusals = errorReplies(400, 401, 403, 409, 429, 503)

  /** What a ping or a traceroute is asked; its target is noted for the trail. */
  function probed(
    request: FastifyRequest,
    reply: FastifyReply,
    { endpoint: target, family }: Static<typeof ProbeQuery>,
  ): Question {
    request.auditResource = { name: target }
    return { target, family, ...bounds(request, reply) }
  }

  app.get(
    `${path}/ping`,
    {
      exposeHeadRoute: false,
      config,
      schema: {
        operationId: 'pingEndpoint',
        tags,
        summary: 'Ping an address or a name from this host, for administrators',
        description:
          'Five packets. The reply comes also where nothing answers. At most five diagnoses run at the same time.',
        querystring: ProbeQuery,
        response: { 200: PingResponse, ...refusals },
      },
    },
    async (request, reply) => {
      const { result, ...published } = await connectivity.ping(probed(request, reply, request.query))
      request.auditNote = `${result.received} of ${result.transmitted} answered`
      return request.query.structured === true ? { ...published, result } : published
    },
  )

  app.get(
    `${path}/traceroute`,
    {
      exposeHeadRoute: false,
      config,
      schema: {
        operationId: 'traceRoute',
        tags,
        summary: 'Find the routers on the way to an address or a name, for administrators',
        description:
          'At most 30 hops. The reply comes also where nothing answers. At most five diagnoses run at the same time.',
        querystring: ProbeQuery,
        response: { 200: TraceRouteResponse, ...refusals },
      },
    },
    async (request, reply) => {
      const { result, ...published } = await connectivity.traceroute(probed(request, reply, request.query))
      request.auditNote = `${result.hops.length} hops, ${result.isReachable ? 'reached' : 'not reached'}`
      return request.query.structured === true ? { ...published, result } : published
    },
  )

  app.get(
    `${path}/check`,
    {
      exposeHeadRoute: false,
      config,
      schema: {
        operationId: 'checkConnectivity',
        tags,
        summary: 'Check a connection from this host stage by stage, for administrators',
        description:
          'dns: addresses of the name. tcp: a connection. tls: also the certificate. mtu: the largest packet that arrives whole. registry: also /v2/ of a registry of images. platform: the platform of this host, or of target, through its proxy. The first stage that fails is the last, and next says what to do.',
        querystring: Type.Object({
          target: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 300,
              description:
                'NAME:PORT, an address or a URL; without a port 443. Absent only for the platform of this host.',
            }),
          ),
          kind: CheckKind,
          family: Family,
        }),
        response: { 200: ConnectivityCheck, ...refusals },
      },
    },
    async (request, reply) => {
      const { target, kind, family } = request.query
      request.auditResource = { name: target ?? 'the platform' }
      const found = await check({ target, kind, family, ...bounds(request, reply) })
      request.auditNote = `${kind}: ${found.isOk ? 'ok' : `failed at ${found.stages.at(-1)?.name ?? 'the beginning'}`}`
      return found
    },
  )
}
