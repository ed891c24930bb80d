import 'fastify'
import type { Role } from '../base/role.ts'

/** Who may use a route: anyone, anyone who is logged in, or administrators only. Every route declares it. */
export type Access = 'open' | Role

/** The user behind a request whose token was accepted. */
export interface Caller {
  /** Name of the account as NSS returns it. */
  readonly userName: string
  readonly role: Role
  /** Of the session that the token belongs to; none for root on the local socket. */
  readonly sessionUid: string | undefined
}

/** Who may open the local socket. */
export const localCaller: Caller = Object.freeze({ userName: 'root', role: 'admin', sessionUid: undefined })

/** Says of a caller whether its session has ended, or no longer has its role. */
export type IsGone = (caller: Caller) => boolean

/** Looks at a token and says whose it is; nothing when it is altered, expired or revoked. */
export type Authenticate = (token: string) => Caller | undefined

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** Says yes to a request that needs no session, on a route that is not open. It then has no caller. */
    bypass?: (request: FastifyRequest) => boolean
    /** An open route that acts for the caller when there is a good token. */
    optionalSession?: boolean
    /** Refused while the platform manages the clusters. */
    airgapOnly?: boolean
  }
  interface FastifyRequest {
    /** The caller; null on open routes. */
    caller: Caller | null
  }
}
