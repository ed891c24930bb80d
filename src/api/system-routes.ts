import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { apiReplies } from './replies.ts'

/**
 * A handler for monitors, which ask every few seconds: `body` while all is well, else 503 `NotReady`. The 503 is sent and not
 * thrown, since a thrown error would be a line in the journal.
 */
export const sayWhether =
  <Body>(isWell: () => boolean, body: Body) =>
  async (request: FastifyRequest, reply: FastifyReply) =>
    isWell()
      ? body
      : reply
          .code(503)
          .send(apiReplies.errorBody(new AppError(generalErrors.NotReady, 'not now'), request.id))

export interface DocumentRouteOptions {
  readonly tag: string
  /** Loads the document, which was made from the routes at build time. Only called when a client asks for it. */
  readonly load: () => Promise<unknown>
}

/** `GET /openapi.json`: the document of the API. */
export const documentRoute: FastifyPluginAsyncTypebox<DocumentRouteOptions> = async (app, { tag, load }) => {
  app.get(
    '/openapi.json',
    {
      config: { access: 'open' },
      schema: {
        operationId: 'getOpenapi',
        tags: [tag],
        summary: 'This API as an OpenAPI document',
        response: { 200: Type.Record(Type.String(), Type.Unknown()) },
      },
    },
    async (_request, reply) => {
      const document = await load()
      return reply
        .type('application/json; charset=utf-8')
        .serializer((body: unknown) => JSON.stringify(body))
        .send(document as Record<string, unknown>)
    },
  )
}
