import type { FastifyReply, FastifyRequest } from 'fastify'
import { keepOpen } from '../../api/keep-open.ts'

/**
 * Lets the client of a request wait for checks that take long.
 * @returns aborted when the session of the request ends, or its connection; also after the reply
 */
export function waitFor({ sessionEnd }: FastifyRequest, reply: FastifyReply): AbortSignal {
  keepOpen(reply)
  const closed = new AbortController()
  reply.raw.once('close', () => closed.abort(new Error('the client is gone')))
  return AbortSignal.any([sessionEnd, closed.signal])
}
