import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { apiReplies } from '../../api/replies.ts'
import { errorReplies } from '../../api/schemas.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { PlatformStatus } from '../schemas/system.ts'

/** Of the room `service`. */
export interface SystemRoutesOptions {
  readonly health: { isAlive(): boolean; isReady(): boolean }
  readonly status: () => Promise<PlatformStatus>
}

const HealthPing = Type.Object({ msg: Type.String() }, { title: 'HealthPing' })

/** Liveness, readiness and status of the platform, and the document of its API. */
export const systemRoutes: FastifyPluginAsyncTypebox<SystemRoutesOptions> = async (
  app,
  { health, status },
) => {
  // Monitors ask every few seconds. The 503 is sent and not thrown, since a thrown error would be a line in the journal.
  const sayWhether =
    (isWell: () => boolean, msg: string) => async (request: FastifyRequest, reply: FastifyReply) =>
      isWell()
        ? { msg }
        : reply
            .code(503)
            .send(apiReplies.errorBody(new AppError(generalErrors.NotReady, 'not now'), request.id))

  const probes = [
    {
      url: '/v1/health/ping',
      operationId: 'pingHealth',
      summary: 'Whether the platform is alive; if not, a restart helps',
      answer: sayWhether(() => health.isAlive(), 'pong'),
    },
    {
      url: '/v1/health/ready',
      operationId: 'getReadiness',
      summary: 'Whether the platform can do all its work now',
      answer: sayWhether(() => health.isReady(), 'ready'),
    },
  ]
  for (const { url, operationId, summary, answer } of probes)
    app.get(
      url,
      {
        config: { access: 'open' },
        schema: {
          operationId,
          tags: ['system'],
          summary,
          response: { 200: HealthPing, ...errorReplies(503) },
        },
      },
      answer,
    )

  app.get(
    '/v1/system/status',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getPlatformStatus',
        tags: ['system'],
        summary: 'State of the platform: start, addresses, certificate, failing checks, disk space',
        response: { 200: PlatformStatus, ...errorReplies(401, 403) },
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
        tags: ['system'],
        summary: 'This API as an OpenAPI document',
        response: { 200: Type.Record(Type.String(), Type.Unknown()) },
      },
    },
    async (_request, reply) => {
      // Made from the routes at build time, and loaded only when a client asks for it.
      const { default: document } = await import('../../../docs/platform-openapi.json', {
        with: { type: 'json' },
      })
      return reply
        .type('application/json; charset=utf-8')
        .serializer((body: unknown) => JSON.stringify(body))
        .send(document)
    },
  )
}
