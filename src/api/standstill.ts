import type { FastifyInstance } from 'fastify'
import type { AppError } from '../errors/app-error.ts'
import { isMutating } from './audit-hook.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * A change that is served while the host is being reset: it is none of what a reset removes, or it has a refusal of its own. Routes without
     * a session always are.
     */
    servedInReset?: boolean
  }
}

/**
 * Refuses changes while the host is being reset: what comes then would go with the next phase, or be left over by one that is done. A new route
 * is refused unless it says otherwise.
 * @param refusal asked for by each change of a caller with a session; undefined while changes are served
 */
export function addStandstill(app: FastifyInstance, refusal: () => AppError | undefined): void {
  app.addHook('onRoute', (route) => {
    const { access = 'open', servedInReset = false } = route.config ?? {}
    if (access === 'open' || servedInReset || ![route.method].flat().some(isMutating)) return
    // After the credentials, so that only those who may change something learn of the reset.
    route.preHandler = [
      (request, _reply, done) => done(isMutating(request.method) ? refusal() : undefined),
      ...[route.preHandler ?? []].flat(),
    ]
  })
}
