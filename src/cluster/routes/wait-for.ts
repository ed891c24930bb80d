import type { FastifyReply, FastifyRequest } from 'fastify'
import { keepOpen } from '../../api/keep-open.ts'
import { requestEnd } from '../../api/request-end.ts'

/**
 * Lets the client of a request wait for checks that take long.
 * @returns aborted when the session of the request ends, or its connection
 */
export function waitFor(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  keepOpen(reply)
  return requestEnd(request, reply)
}
