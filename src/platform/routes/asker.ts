import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from '../../api/guard.ts'
import { requestEnd } from '../../api/request-end.ts'
import type { Asker } from '../examinations.ts'

/** On whose behalf a request is examined; the examination ends with the session or the connection. */
export const askerOf = (request: FastifyRequest, reply: FastifyReply): Asker => ({
  name: callerOf(request).userName,
  signal: requestEnd(request, reply),
})
