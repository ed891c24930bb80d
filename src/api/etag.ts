import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest, RouteHandlerMethod } from 'fastify'
import { Type } from 'typebox'
import { requireTag } from '../errors/refused-field.ts'
import { isMutating } from './audit-hook.ts'
import { ErrorBody } from './schemas.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The writable part of the single resource of a route, without changes that come by themselves, as heartbeats. A read gets its ETag, and
     * a change honours `If-Match`. It throws the handler's error where there is no such resource.
     */
    writable?: (request: FastifyRequest) => unknown
    /** The handler sets the ETag, or honours `If-Match`, by itself. */
    hasEtag?: true
  }
  interface FastifyRequest {
    /** For a handler that waits before it writes: throws where the resource is another one by now than `If-Match` names. */
    requireMatch: () => void
  }
}

/** Whether `If-None-Match` of a request names this tag; a weak tag stands for the same bytes (RFC 9110, 13.1.2). */
export function matchesEtag({ headers }: FastifyRequest, etag: string): boolean {
  const field = headers['if-none-match']
  if (field === undefined) return false
  return field.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

/** The entity tag of these bytes. */
export const etagOf = (bytes: string | Buffer): string =>
  `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`

/** The entity tag of a value that JSON has. */
const tagOf = (value: unknown): string => etagOf(JSON.stringify(value))

const ifMatch = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description: 'The ETag of a read, or *: the change is refused if another one came between.',
    }),
  ),
})

/**
 * Gives the routes that declare `writable` their ETag and `If-Match`, and those that honour it by themselves the same in the document. The check
 * is made in the same turn of the event loop as the handler begins, so that nothing comes between where that writes at once.
 */
export function addEtags(app: FastifyInstance): void {
  app.decorateRequest('requireMatch', () => undefined)
  app.addHook('onRoute', (route) => {
    const { writable, hasEtag } = route.config ?? {}
    if (!writable && !hasEtag) return
    const isChange = [route.method].flat().some(isMutating)
    if (isChange && route.schema) {
      // In its place: the document keeps this object.
      const { headers = ifMatch, response } = route.schema
      Object.assign(route.schema, { headers, response: { ...(response as object), 412: ErrorBody } })
    }
    if (!writable) return
    const handler: RouteHandlerMethod = route.handler
    route.handler = function (request, reply) {
      if (isChange) {
        request.requireMatch = () => {
          requireTag(request.headers['if-match'], tagOf(writable(request)))
        }
        request.requireMatch()
      } else void reply.header('etag', tagOf(writable(request)))
      const replied: unknown = handler.call(this, request, reply)
      return replied
    }
  })
}
