import 'fastify'
import type { Role } from '../base/role.ts'

/** Who may use a route: anyone, anyone who is logged in, or administrators only. Every route declares it. */
export type Access = 'open' | Role

/** The user behind a request whose token was accepted. */
export interface Caller {
  /** Name of the account as NSS returns it. */
  readonly userName: string
  readonly role: Role
  /** The session of the token; `undefined` for root on the local socket. */
  readonly sessionUid: string | undefined
}

/** The caller of every request on the local socket. */
export const localCaller: Caller = Object.freeze({ userName: 'root', role: 'admin', sessionUid: undefined })

/** Whether the session of a caller has ended, or no longer has its role. */
export type IsGone = (caller: Caller) => boolean

/** The caller of a token; `undefined` for one that is altered, expired or revoked. */
export type Authenticate = (token: string) => Caller | undefined

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** Whether a request needs no session on this route, which is not open. Such a request has no caller. */
    bypass?: (request: FastifyRequest) => boolean
    /** An open route that acts for the caller when the request has a valid token. */
    optionalSession?: boolean
    /** Requests are refused while the platform manages the clusters. */
    airgapOnly?: boolean
  }
  interface FastifyRequest {
    /** The caller; null on open routes. */
    caller: Caller | null
  }
}
