import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const acceptable = /^[A-Za-z0-9._-]{1,64}$/

/**
 * The id of a request: the client's own `X-Request-Id` if it is safe in a log line and a header, otherwise a new one. An id
 * of a client need not be unique.
 */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && acceptable.test(given) ? given : randomUUID()
}
