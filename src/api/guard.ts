import { parseCookie, stringifySetCookie } from 'cookie'
import type { FastifyReply, FastifyRequest, FastifyInstance, onRequestHookHandler } from 'fastify'
import type { Socket } from 'node:net'
import { AppError } from '../errors/app-error.ts'
import {
  type Caller,
  localCaller,
  type Access,
  type Authenticate,
  type Authorize,
  type Decision,
  type Identify,
  type IsGone,
  type Redeem,
} from './access.ts'
import { refuseBody } from './replies.ts'
import { program } from '../base/program.ts'
import { apiErrors, hostApiErrors } from './codes.ts'
import { generalErrors } from '../errors/codes.ts'
import { isAtLeast, type Mode, type Role } from '../base/role.ts'

/** Cookie that carries the access token, as published clients send it. */
const accessCookie = 'Authorization'
/** Cookie that carries the refresh token. */
export const refreshCookie = 'RefreshToken'

// No script and no other site can use them, and they are sent only over TLS. A browser sends a cookie to every port of a name: below the path of
// the API it does not reach the pages of an application on another port of this host.
const attributes = { path: '/v1/', httpOnly: true, secure: true, sameSite: 'strict' } as const

/** The path that cookies of earlier versions have. */
const formerPath = '/'

/** A cookie of the request; parsed only when asked for. */
export function findCookie(request: FastifyRequest, name: string): string | undefined {
  const header = request.headers.cookie
  return header === undefined ? undefined : parseCookie(header)[name] || undefined
}

/** Has the browser keep both tokens until it is closed. */
export function setTokenCookies(reply: FastifyReply, tokens: { access: string; refresh: string }): void {
  void reply.header('set-cookie', [
    stringifySetCookie({ name: accessCookie, value: tokens.access, ...attributes }),
    stringifySetCookie({ name: refreshCookie, value: tokens.refresh, ...attributes }),
  ])
}

/** Has the browser remove both tokens. */
export function clearTokenCookies(reply: FastifyReply): void {
  void reply.header(
    'set-cookie',
    [attributes.path, formerPath].flatMap((path) =>
      [accessCookie, refreshCookie].map((name) =>
        stringifySetCookie({ name, value: '', maxAge: 0, ...attributes, path }),
      ),
    ),
  )
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Aborted, with the refusal as its reason, when the session of the caller ends or loses its role while the request
     * is in flight; on the platform also when a key, a host or a project is gone, or the caller may not do this any more. A handler that
     * works for long, or whose reply has no end, has to end then. It is never aborted for root on the local socket.
     */
    readonly sessionEnd: AbortSignal
    /** Set together with `caller`, but for root on the local socket. */
    inFlight: InFlight | null
  }
}

/** The requests in flight whose caller has shown credentials. */
interface SessionRequests {
  add(request: FastifyRequest, reply: FastifyReply, caller: Caller): void
  /** Ends the requests for which there is a refusal now. */
  end(refusalOf: (request: FastifyRequest, caller: Caller) => AppError | undefined): void
}

interface InFlight {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly caller: Caller
  /** Monotonic milliseconds. */
  readonly since: number
  /** Created when a handler uses its signal. */
  abort: AbortController | undefined
  ended: AppError | undefined
  timer: NodeJS.Timeout | undefined
}

// After the signal a handler has this long to reply, or to end its reply.
const answerMs = 5_000

/**
 * Ends requests when the session that they were accepted with ends: at once, with the refusal, if a handler uses `sessionEnd` or
 * the body is still arriving; all others as soon as they have lasted for `longMs`, by closing their connection. So the
 * request that ends its own session still gets its reply, and short replies are not cut off.
 */
function addSessionRequests(app: FastifyInstance, longMs: number): SessionRequests {
  // By connection and not in one map by request: V8 keeps old copies of a map that changes with every request, and with
  // them finished requests; the garbage collection halved the throughput.
  const connections = new Map<Socket, InFlight[]>()

  app.decorateRequest('inFlight', null)
  app.decorateRequest('sessionEnd', {
    getter() {
      const entry = this.inFlight
      if (!entry) return new AbortController().signal
      entry.abort ??= new AbortController()
      if (entry.ended) entry.abort.abort(entry.ended)
      return entry.abort.signal
    },
  })

  /** Creates the list of a connection, which is removed when the connection closes. */
  function openConnection(socket: Socket): InFlight[] {
    const entries: InFlight[] = []
    connections.set(socket, entries)
    // A reply that waits behind another one of its connection gets no `close` event when the connection ends.
    socket.once('close', () => {
      connections.delete(socket)
      for (const { timer } of entries) clearTimeout(timer)
    })
    return entries
  }

  function endOne(entry: InFlight, refusal: AppError): void {
    const { request, reply, since } = entry
    const { raw } = request
    entry.ended = refusal
    entry.abort?.abort(refusal)
    const hasStarted = reply.raw.headersSent
    if (!raw.complete && !hasStarted) refuseBody(raw, reply.raw, refusal)
    const leftMs = longMs - (performance.now() - since)
    const isCutOff = hasStarted && !entry.abort
    entry.timer = setTimeout(() => raw.socket.destroy(), Math.max(leftMs, isCutOff ? 0 : answerMs)).unref()
  }

  return {
    add(request, reply, caller) {
      const entries = connections.get(request.socket) ?? openConnection(request.socket)
      const entry: InFlight = {
        request,
        reply,
        caller,
        since: performance.now(),
        abort: undefined,
        ended: undefined,
        timer: undefined,
      }
      request.inFlight = entry
      entries.push(entry)
      reply.raw.once('close', () => {
        clearTimeout(entry.timer)
        entries.splice(entries.indexOf(entry), 1)
      })
    },
    end(refusalOf) {
      for (const entry of [...connections.values()].flat()) {
        const refusal = entry.ended ? undefined : refusalOf(entry.request, entry.caller)
        if (refusal) endOne(entry, refusal)
      }
    },
  }
}

export interface GuardOptions {
  readonly identify: Identify
  /** Redeems the ticket that a download shows; without it there are no tickets. */
  readonly redeem?: Redeem | undefined
  /** Decides about each caller; the default compares roles, see `authorizeByRole`. */
  readonly authorize?: Authorize | undefined
  readonly mode: Mode
  /** Called for each accepted request, so that its connection is kept when connections run out. */
  readonly onAuthenticated: (request: FastifyRequest, caller: Caller, reply: FastifyReply) => void
  /** Longest time of a request or a reply when its session has ended; milliseconds from its start. */
  readonly longRequestMs?: number
}

/** Ends requests in flight. */
interface Guard {
  /** Ends requests whose session is gone, with a 401. */
  endRequests(isGone: IsGone): void
  /** Ends requests that `authorize` refuses now, with its refusal, or whose caller has a lower role now. */
  recheckRequests(): void
}

const minuteMs = 60_000

/**
 * The guard: identifies the caller when a request begins, before its body is read. Credentials that are valid
 * then are good for the whole request, as long as their session lasts. Each route gets a guard of its own, so that its
 * declaration is read once and not for every request.
 */
export function addGuard(
  app: FastifyInstance,
  {
    identify,
    redeem,
    authorize = authorizeByRole,
    mode,
    onAuthenticated,
    longRequestMs = minuteMs,
  }: GuardOptions,
): Guard {
  const requests = addSessionRequests(app, longRequestMs)
  app.decorateRequest('caller', null)
  app.addHook('onRoute', (route) => {
    const { access = 'open', optionalSession = false, airgapOnly = false, bypass } = route.config ?? {}
    if (access === 'open' && airgapOnly)
      throw new Error(
        `the route ${route.url} is open and airgapOnly; the mode is checked after the token, so the route must require one`,
      )
    if (bypass && airgapOnly)
      throw new Error(
        `the route ${route.url} has bypass and airgapOnly; a caller that bypasses the session also bypasses the mode`,
      )
    if (access === 'open' && !optionalSession) return
    const redeemHere = route.config?.ticket === true ? redeem : undefined
    const isElsewhere = airgapOnly && mode === 'connected'
    const guard: onRequestHookHandler = (request, reply, done) => {
      if (bypass?.(request) === true) {
        done()
        return
      }
      if (request.peer.isLocal) {
        // A token that is sent too is ignored: it could only take rights away.
        const { refusal, caller = localCaller } = authorize(request, localCaller, access)
        // The trail records refusals of root as root's.
        request.caller = caller
        done(isElsewhere ? managedByPlatform() : refusal)
        return
      }
      const isByTicket = redeemHere !== undefined && showsTicket(request)
      const identified = isByTicket ? redeemHere(request) : identify(request)
      if (identified === undefined) {
        done(isByTicket ? ticketRefused() : access === 'open' ? undefined : unauthenticated())
        return
      }
      const early = refuseOrigin(request, identified) ?? (isElsewhere ? managedByPlatform() : undefined)
      const { refusal, caller = identified }: Decision = early
        ? { refusal: early }
        : authorize(request, identified, access)
      // The trail records refusals with their caller too.
      request.caller = caller
      if (refusal) {
        done(refusal)
        return
      }
      requests.add(request, reply, caller)
      onAuthenticated(request, caller, reply)
      done()
    }
    route.onRequest = [guard, ...[route.onRequest ?? []].flat()]
  })
  return {
    endRequests: (isGone) =>
      requests.end((_request, caller) => (isGone(caller) ? sessionEnded() : undefined)),
    recheckRequests() {
      requests.end((request, caller) => {
        const { access = 'open' } = request.routeOptions.config
        const { refusal, caller: now = caller } = authorize(request, caller, access)
        // The handler may have read the role, as for the fields of a reply.
        return refusal ?? (isAtLeast(now.role, caller.role) ? undefined : roleLost())
      })
    },
  }
}

/** Identifies callers by the access token in the header, or otherwise in the cookie. */
export function identifyByToken(authenticate: Authenticate): Identify {
  return (request) => {
    const token = accessTokenOf(request)
    return token === undefined ? undefined : authenticate(token)
  }
}

// Belongs to authentication: a cookie counts only for requests from the same origin. Keys and the tokens of hosts are never in cookies.
function refuseOrigin(request: FastifyRequest, { kind }: Caller): AppError | undefined {
  const byCookie = request.headers.authorization === undefined && kind !== 'key' && kind !== 'host'
  return byCookie && !isSafe(request.method) && !isSameOrigin(request) ? crossOrigin() : undefined
}

/**
 * Whether a caller may use a route with this access, by its role. The token of a host opens only open routes and those for hosts, and
 * only such a token opens those for hosts.
 */
export function mayUse({ kind, role }: Caller, access: Access): boolean {
  if (access === 'open') return true
  return access === 'host' || kind === 'host' ? access === kind : isAtLeast(role, access)
}

const needed: Readonly<Record<Role | 'host', string>> = {
  admin: `this needs an administrator of the ${program.noun}`,
  operator: 'this needs an operator',
  viewer: 'this needs a user',
  host: 'this needs the token of an edge host',
}

/** Compares the role of the caller with the access of the route. */
export const authorizeByRole: Authorize = (_request, caller, access) =>
  access === 'open' || mayUse(caller, access)
    ? {}
    : { refusal: new AppError(generalErrors.Forbidden, needed[access]) }

/** Refuses a request that a cookie authenticates and that another site may have caused. For open routes that read cookies. */
export function requireSameOrigin(request: FastifyRequest): void {
  if (!isSameOrigin(request)) throw crossOrigin()
}

/** The user behind a request on a route that is not open. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw unauthenticated()
  return request.caller
}

/**
 * The user behind a request and its session.
 * @throws AppError NoSession on the local socket, which has no sessions
 */
export function sessionCallerOf(request: FastifyRequest): Caller & { readonly sessionUid: string } {
  const { sessionUid, ...caller } = callerOf(request)
  if (sessionUid === undefined)
    throw new AppError(apiErrors.NoSession, 'there is no session on the local socket: root needs none there')
  return { ...caller, sessionUid }
}

/** The access token of a request, from the header or otherwise from the cookie. */
export function accessTokenOf(request: FastifyRequest): string | undefined {
  const header = request.headers.authorization
  return header === undefined ? findCookie(request, accessCookie) : withoutScheme(header)
}

/** Whether a request shows a ticket, also an unusable one: it counts in place of all other credentials. */
const showsTicket = ({ query }: FastifyRequest): boolean =>
  (query as { readonly ticket?: unknown }).ticket !== undefined

const withoutScheme = (header: string) => (/^bearer /i.test(header) ? header.slice(7).trim() : header)

const isSafe = (method: string) => method === 'GET' || method === 'HEAD' || method === 'OPTIONS'

// Browsers send Sec-Fetch-Site or, older ones, Origin on every change; a page of another site can forge neither.
function isSameOrigin(request: FastifyRequest): boolean {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  return (
    request.headers.origin !== undefined && request.headers.origin === `https://${request.headers.host ?? ''}`
  )
}

const unauthenticated = () =>
  new AppError(generalErrors.Unauthenticated, 'log in first: the token is missing, expired or revoked')

// Says nothing of why: the one who shows it may have stolen it.
const ticketRefused = () =>
  new AppError(
    generalErrors.Unauthenticated,
    'the ticket is unknown, used, older than 30 seconds, or for another path, or its session has ended; ask for another one',
  )

const sessionEnded = () =>
  new AppError(generalErrors.Unauthenticated, 'the session of this request has ended; log in and try again')

const roleLost = () =>
  new AppError(generalErrors.Forbidden, 'the role of this user was taken away meanwhile; try again')

const managedByPlatform = () =>
  new AppError(
    hostApiErrors.ManagedByPlatform,
    'the platform manages the clusters of this host; use the platform',
  )

const crossOrigin = () =>
  new AppError(
    hostApiErrors.CrossOrigin,
    'a change authenticated by cookie must come from the same origin; send the token in the Authorization header instead',
  )
