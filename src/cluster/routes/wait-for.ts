import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * Lets the client of a request wait for checks that take long.
 * @returns aborted when the session of the request ends, or its connection; also after the reply
 */
export function waitFor({ sessionEnd }: FastifyRequest, { raw }: FastifyReply): AbortSignal {
  // No bytes move on the connection while the checks run. With a listener for 'timeout', Node does not close it.
  raw.on('timeout', () => undefined)
  const closed = new AbortController()
  raw.once('close', () => closed.abort(new Error('the client is gone')))
  return AbortSignal.any([sessionEnd, closed.signal])
}
