import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'

/** What the edge itself answers: it lives, and what it can be asked. */
export const apiRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/v1/ping',
    {
      config: { access: 'open' },
      schema: {
        operationId: 'ping',
        tags: ['service'],
        summary: 'Whether the daemon answers',
        response: { 200: Type.Object({ msg: Type.String() }) },
      },
    },
    async () => ({ msg: 'pong' }),
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
      // Made at build time from the routes, read only when somebody asks.
      const { default: document } = await import('../../docs/openapi.json', { with: { type: 'json' } })
      return reply.serializer((body: unknown) => JSON.stringify(body)).send(document)
    },
  )
}
