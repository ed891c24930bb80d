import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { apiReplies } from '../api/replies.ts'
import type { Health } from './health.ts'
import { errorReplies } from '../api/schemas.ts'
import { ServiceStatus } from './schemas.ts'

export interface ServiceRoutesOptions {
  readonly health: Health
  readonly status: () => Promise<ServiceStatus>
}

const Well = Type.Object({ status: Type.Literal('ok') })

/** Liveness, readiness and status of the daemon, and the document of its API. */
export const serviceRoutes: FastifyPluginAsyncTypebox<ServiceRoutesOptions> = async (
  app,
  { health, status },
) => {
  app.get(
    '/v1/ping',
    {
      config: { access: 'open', limited: false },
      schema: {
        operationId: 'ping',
        tags: ['service'],
        summary: 'Whether the daemon answers',
        response: { 200: Type.Object({ msg: Type.String() }) },
      },
    },
    async () => ({ msg: 'pong' }),
  )

  // Monitors ask every few seconds. The 503 is sent and not thrown, since a thrown error would be a line in the journal.
  const sayWhether = (isWell: () => boolean) => async (request: FastifyRequest, reply: FastifyReply) =>
    isWell()
      ? { status: 'ok' as const }
      : reply
          .code(503)
          .send(apiReplies.errorBody(new AppError(generalErrors.NotReady, 'not now'), request.id))

  app.get(
    '/healthz',
    {
      config: { access: 'open', limited: false },
      schema: {
        operationId: 'getHealth',
        tags: ['service'],
        summary: 'Whether the daemon is alive; if not, a restart helps',
        response: { 200: Well, ...errorReplies(503) },
      },
    },
    sayWhether(() => health.isAlive()),
  )

  app.get(
    '/readyz',
    {
      config: { access: 'open', limited: false },
      schema: {
        operationId: 'getReadiness',
        tags: ['service'],
        summary: 'Whether the daemon can do all its work now',
        response: { 200: Well, ...errorReplies(503) },
      },
    },
    sayWhether(() => health.isReady()),
  )

  app.get(
    '/v1/edge-mgmt/edgehosts/current/status',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getServiceStatus',
        tags: ['service'],
        summary: 'State of the daemon: start, addresses, certificate, failing checks, disk space',
        response: { 200: ServiceStatus, ...errorReplies(401, 403) },
      },
    },
    async () => status(),
  )

  app.get(
    '/openapi.json',
    {
      config: { access: 'open' },
      schema: {
        operationId: 'getOpenapi',
        tags: ['service'],
        summary: 'This API as an OpenAPI document',
        response: { 200: Type.Record(Type.String(), Type.Unknown()) },
      },
    },
    async (_request, reply) => {
      // Made from the routes at build time, and loaded only when a client asks for it.
      const { default: document } = await import('../../docs/openapi.json', { with: { type: 'json' } })
      return reply
        .type('application/json; charset=utf-8')
        .serializer((body: unknown) => JSON.stringify(body))
        .send(document)
    },
  )
}
