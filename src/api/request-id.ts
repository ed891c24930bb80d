import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const acceptable = /^[A-Za-z0-9._-]{1,64}$/

/**
 * The id of a request: the client's own `X-Request-Id` where it can stand in a log line and a header as it is, else
 * a new one. It is not unique then: it names what the client wants to find again.
 */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && acceptable.test(given) ? given : randomUUID()
}
