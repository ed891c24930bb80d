import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

const slowMs = 1_000

/**
 * One line a request. Changes, refusals, failures and slow requests are `info` or above; other reads are `debug`,
 * so that the journal of a healthy host is quiet.
 */
export function addRequestLog(app: FastifyInstance, log: Logger): void {
  app.addHook('onResponse', (request, reply, done) => {
    const level = levelOf(request, reply)
    if (log.isLevelEnabled(level)) {
      log[level](
        {
          ref: request.id,
          method: request.method,
          // The query is left out: it may hold what a client should not have put there.
          path: request.url.split('?', 1)[0],
          status: reply.statusCode,
          durationMs: Math.round(reply.elapsedTime),
          address: request.address,
          ...(request.caller ? { user: request.caller.userName } : {}),
        },
        'request',
      )
    }
    done()
  })
}

function levelOf(request: FastifyRequest, reply: FastifyReply): 'debug' | 'info' | 'error' {
  const status = reply.statusCode
  if (status >= 500) return 'error'
  const isRead = request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS'
  const isRefusal = status === 401 || status === 403 || status === 429
  return !isRead || isRefusal || reply.elapsedTime > slowMs ? 'info' : 'debug'
}
