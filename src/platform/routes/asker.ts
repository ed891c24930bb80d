import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from '../../api/guard.ts'
import { requestEnd } from '../../api/request-end.ts'
import type { Asker } from '../examinations.ts'
import { scopeOf } from './scope.ts'

/** On whose behalf a request is examined; the examination ends with the session or the connection. */
export const askerOf = (request: FastifyRequest, reply: FastifyReply): Asker => ({
  projectUid: scopeOf(request),
  name: callerOf(request).userName,
  signal: requestEnd(request, reply),
})
