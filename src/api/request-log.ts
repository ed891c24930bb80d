import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Lines } from '../system/anonymous-log.ts'
import { uidOf } from '../base/uid.ts'

const slowMs = 1_000

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Clients send their first request without credentials, to be asked for them: its refusal is no news. */
    asksForCredentials?: boolean
  }
}

/** The fields of a log line for a request and its reply. */
export function describeRequest(request: FastifyRequest, reply: FastifyReply) {
  return {
    ref: request.id,
    method: request.method,
    path: pathOf(request),
    status: reply.statusCode,
    durationMs: Math.round(reply.elapsedTime),
    address: request.peer.address,
    ...(request.caller ? { user: request.caller.userName } : {}),
  }
}

/**
 * The pattern of the route, with the parameters that are UUIDs. A query, a path without a route and other parameters are left
 * out, since they may contain something secret.
 */
function pathOf({ routeOptions: { url }, params }: FastifyRequest): string {
  if (url === undefined) return 'unknown'
  const values = params as Readonly<Record<string, unknown>> | null
  return url.replace(/:([A-Za-z]+)/g, (whole, name: string) => uidOf(values?.[name]) ?? whole)
}

/**
 * One line for each request. Changes, refusals and slow requests are `info`, other reads `debug`, so that the journal of a
 * healthy host is quiet. `sendError` logs failures, with their reason, since this hook is not called when the client has
 * disconnected.
 * @param anonymousLog log for the lines of callers without a session
 */
export function addRequestLog(app: FastifyInstance, log: Logger, anonymousLog: Lines): void {
  app.addHook('onResponse', (request, reply, done) => {
    const level = levelOf(request, reply)
    if (level && log.isLevelEnabled(level))
      (request.caller ? log : anonymousLog)[level](describeRequest(request, reply), 'request')
    done()
  })
}

function levelOf(request: FastifyRequest, reply: FastifyReply): 'debug' | 'info' | undefined {
  const status = reply.statusCode
  if (status >= 500) return undefined
  const isRead = request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS'
  // These are summed up once a minute: by the rate limiter, or by the audit record that counts them.
  if (request.isOverLimit || request.isCounted) return 'debug'
  const isFirst =
    request.routeOptions.config.asksForCredentials && request.headers.authorization === undefined
  if (status === 401 && isFirst === true) return 'debug'
  const isRefusal = status === 401 || status === 403 || status === 429
  return !isRead || isRefusal || reply.elapsedTime > slowMs ? 'info' : 'debug'
}
