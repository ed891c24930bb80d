import type { FastifyRequest } from 'fastify'
import type { Role } from '../base/role.ts'
import type { AppError } from '../errors/app-error.ts'

/**
 * Who may use a route: anyone, anyone with at least this role, or an edge host about itself (`host`, on the platform only). Every route
 * declares it.
 */
export type Access = 'open' | Role | 'host'

/** The user, or on the platform the key or the host, behind a request whose credentials were accepted. */
export interface Caller {
  /** Name of the account as NSS returns it; on the platform the e-mail address of the user, or the name of the host. */
  readonly userName: string
  /** The role where the request takes effect. Without a meaning for a host. */
  readonly role: Role
  /** The session of the token, on the platform also the uid of a key; `undefined` for root on the local socket and for hosts. */
  readonly sessionUid: string | undefined
  /** On the platform, the uid of the user or of the host; `undefined` for root on the local socket. */
  readonly uid?: string | undefined
  /** On the platform, the project in which the request takes effect; without one the tenant. */
  readonly projectUid?: string | undefined
  /** On the platform, the credential: a token of a user, a key of a user, or a token of a host; `undefined` for root on the local socket. */
  readonly kind?: 'user' | 'key' | 'host' | undefined
}

/** The caller of every request on the local socket. */
export const localCaller: Caller = Object.freeze({ userName: 'root', role: 'admin', sessionUid: undefined })

/** Whether the session of a caller has ended, or no longer has its role. */
export type IsGone = (caller: Caller) => boolean

/** The caller of a token; `undefined` for one that is altered, expired or revoked. */
export type Authenticate = (token: string) => Caller | undefined

/** The caller of the ticket of a request; `undefined` for one that is used, expired or of another request. */
export type Redeem = (request: Pick<FastifyRequest, 'method' | 'originalUrl' | 'query'>) => Caller | undefined

/** The caller of a request, from its token, key or cookie; `undefined` for one without valid credentials. Called before the body is read. */
export type Identify = (request: FastifyRequest) => Caller | undefined

/** The decision about a caller: a refusal, or the caller that the request continues with; neither leaves the caller as it is. */
export interface Decision {
  readonly refusal?: AppError | undefined
  readonly caller?: Caller | undefined
}

/** Decides whether a caller may use a route with this access. Called for every request with a caller, also for root on the local socket. */
export type Authorize = (request: FastifyRequest, caller: Caller, access: Access) => Decision

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** Whether a request needs no session on this route, which is not open. Such a request has no caller. */
    bypass?: (request: FastifyRequest) => boolean
    /** An open route that acts for the caller when the request has a valid token. */
    optionalSession?: boolean
    /** A download: a GET that a ticket opens too, where the program has tickets (`tickets.ts`). */
    ticket?: true
    /** Requests are refused while the platform manages the clusters. */
    airgapOnly?: boolean
  }
  interface FastifyRequest {
    /** The caller; null on open routes. */
    caller: Caller | null
  }
}
