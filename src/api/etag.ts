import { createHash } from 'node:crypto'
import type {
  FastifyInstance,
  FastifyRequest,
  onSendHookHandler,
  RouteHandlerMethod,
  RouteOptions,
} from 'fastify'
import { Type } from 'typebox'
import { requireTag } from '../errors/refused-field.ts'
import { isMutating } from './audit-hook.ts'
import { ErrorBody, notModified } from './schemas.ts'

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

/** Whether `If-None-Match` of a request names this tag; weak tags are compared by what they stand for (RFC 9110, 13.1.2). */
export function matchesEtag({ headers }: FastifyRequest, etag: string): boolean {
  const field = headers['if-none-match']
  if (field === undefined) return false
  const held = withoutWeakness(etag)
  return field.split(',').some((tag) => tag.trim() === '*' || withoutWeakness(tag.trim()) === held)
}

const withoutWeakness = (tag: string) => tag.replace(/^W\//, '')

/** The entity tag of these bytes. */
export const etagOf = (bytes: string | Buffer): string =>
  `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`

// Fields that move by themselves, in any reply: a client that polls would never hear that nothing has changed. Of numbers the first two digits
// count, of texts nothing.
const moving = /"(uptimeSeconds|freeBytes|usedBytes|availableBytes|lastProbeTime)":("[^"]*"|\d+)/g

/** The entity tag of a reply, weak where it has fields that do not count in full (RFC 9110, 8.8.1). */
export function etagOfReply(body: string): string {
  if (body.search(moving) === -1) return etagOf(body)
  const counting = body.replace(moving, (_field, name: string, value: string) =>
    value.startsWith('"') ? `"${name}":""` : `"${name}":${Number(value).toPrecision(2)}`,
  )
  return `W/${etagOf(counting)}`
}

/**
 * Whether the reply of a route gets a tag of its bytes: JSON for users. Other routes have a tag of their own, or none: files, streams, and what
 * monitors and hosts read.
 */
function isTagged({ method, config, schema }: RouteOptions): boolean {
  const { access, writable, hasEtag } = config ?? {}
  if (![method].flat().includes('GET') || writable !== undefined || hasEtag === true) return false
  const { 200: body, 304: own } = (schema?.response ?? {}) as Readonly<Record<number, object | undefined>>
  return access !== 'open' && access !== 'host' && body !== undefined && !('content' in body) && !own
}

/** Adds the tag of a reply, or replies 304 to a client that has it. */
const tagReply: onSendHookHandler = (request, reply, payload, done) => {
  if (reply.statusCode !== 200 || typeof payload !== 'string') {
    done(null, payload)
    return
  }
  const etag = etagOfReply(payload)
  void reply.header('etag', etag)
  if (!matchesEtag(request, etag)) {
    done(null, payload)
    return
  }
  void reply.code(304)
  done(null, null)
}

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
 * is made in the same turn of the event loop as the handler begins, so that nothing comes between where that writes at once. All other replies of
 * JSON get a tag of their bytes, so that a client that polls is told of changes alone.
 */
export function addEtags(app: FastifyInstance): void {
  app.decorateRequest('requireMatch', () => undefined)
  app.addHook('onRoute', (route) => {
    const { writable, hasEtag } = route.config ?? {}
    if (isTagged(route)) {
      if (route.schema) {
        const { response } = route.schema
        Object.assign(route.schema, { response: { ...(response as object), ...notModified } })
      }
      route.onSend = [tagReply, ...[route.onSend ?? []].flat()]
      return
    }
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
