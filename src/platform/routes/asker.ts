import type { FastifyRequest } from 'fastify'
import { callerOf } from '../../api/guard.ts'
import type { Asker } from '../examinations.ts'

/** On whose behalf a request is examined; it ends with the session or the connection. */
export const askerOf = (request: FastifyRequest, signal = request.sessionEnd): Asker => ({
  name: callerOf(request).userName,
  signal,
})
