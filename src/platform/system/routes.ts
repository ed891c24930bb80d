import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../../api/schemas.ts'
import { documentRoute, sayWhether } from '../../api/system-routes.ts'
import { PlatformStatus } from './schemas.ts'

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
  const probes = [
    {
      url: '/v1/health/ping',
      operationId: 'pingHealth',
      summary: 'Whether the platform is alive; if not, a restart helps',
      answer: sayWhether(() => health.isAlive(), { msg: 'pong' }),
    },
    {
      url: '/v1/health/ready',
      operationId: 'getReadiness',
      summary: 'Whether the platform can do all its work now',
      answer: sayWhether(() => health.isReady(), { msg: 'ready' }),
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

  await documentRoute(app, {
    tag: 'system',
    load: async () =>
      (await import('../../../docs/platform-openapi.json', { with: { type: 'json' } })).default,
  })
}
