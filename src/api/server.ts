// `GET /v1/edge-mgmt/edgehosts/current`:
//
// 1. systemd keeps port 5080 open and passes the socket to the daemon, so a restart refuses no connection.
// 2. `api/connection/connections.ts` admits the connection; at a limit it closes an unauthenticated one for it, idle ones first. On the platform
//    `api/connection/connections.ts` keeps connections of hosts open between heartbeats, and closes the others after each reply;
//    `api/connection/fed-server.ts` and `api/connection/https-server.ts` close connections that are too slow. The parser gets its bytes in pieces
//    (ADR 33): `api/connection/fed-server.ts` hands each connection to Node's HTTP server as a `fed-socket.ts`, and `feeder.ts`, one for all
//    servers of the process, says whose piece is parsed next.
// 3. `api/connection/peer.ts` finds the client: the address of the connection, or behind a proxy of `api.trustedProxies` the one that
//    `X-Forwarded-For` names. `api/server.ts` gives the request an id, the client's own if that is valid
//    (`api/replies.ts`). Every reply contains the id and the common header fields of the app (`api/replies.ts`, ADR 15).
// 4. `api/rate/limit.ts` takes a token from the bucket of the client and the resource, or answers 429. On the platform the resource is the row of
//    its table of rates (`api/rate/rows.ts`). A request with a known access token takes it from the bucket of its user (ADR 6, ADR 16). The limit
//    comes before the guard, so that a flood without a token is limited too. A request that matches no route then gets 404 or 405
//    (`api/errors.ts`), with its body unread.
// 5. `api/guard.ts` asks `auth/sessions.ts` for the user of the token, before the body is read (`identify`; the platform also knows keys and the
//    tokens of hosts, and decides with `authorize` by the project of the request). The signature of a token is checked once; after that the token
//    is found in memory, and only its expiry is checked. A download may show a ticket in its query instead, which stands for a token once
//    (`api/tickets.ts`, on hosts); no line and no record has the query. The token is removed when its session ends or loses its role. Then the guard checks the mode,
//    since a route that declares `airgapOnly` is refused on a connected host, and then the role. From here on `api/guard.ts` tracks the request as
//    one in flight: when the session ends or loses its role, the signal `request.sessionEnd` is aborted and a body that is still arriving is
//    refused with 401; any other request or reply loses its connection when it has lasted a minute. The connection then counts as unauthenticated
//    again. On the platform `platform/requests/changes.ts` is notified when users, keys, tokens and hosts are gone, and when roles or projects have
//    changed: then the guard asks `authorize` again for every request in flight. `api/request-end.ts` ends the long work of a handler with the
//    session or the connection. `api/spelling.ts` then refuses misspelt query parameters and fields of bodies, and `dryRun` on a change that
//    does not offer it.
// 6. A JSON body is read into one buffer that grows with the received bytes (`api/json-body.ts`, ADR 17); one that nests too deep, has too many
//    values or has half of a character is refused before it is parsed (`api/json-form.ts`). `api/compilers.ts` validates it against its schema;
//    bodies are never coerced.
// 7. `host/routes.ts` sends the text that `host/snapshot.ts` has prepared. No request waits for a subprocess.
// 8. `api/errors.ts` writes a line: `debug` for a successful read, `info` and above for other requests. The line contains the pattern of the route
//    and the UUIDs in the path, and nothing else from the client; `unknown` if no route matched.
//
// A refusal does not read the body of its request (`api/connection/waiting-replies.ts`). `100 Continue` is sent when a handler begins to read. If
// no handler reads a body, up to 64 KiB of it are read and thrown away, and the connection stays open. If more may arrive, the reply says
// `Connection: close`, and the connection is closed two seconds later or when the client has closed, so that no reset overtakes the reply.
// `api/replies.ts` ends a body that is refused while a handler reads it.
//
// Requests of root on the host arrive over a Unix socket, at a second server for the same routes (`api/connection/local-server.ts`). That server
// keeps a set of the connections it has accepted, and only this set makes a request local: the guard then sets the caller `root`, the rate limiter
// does not apply, and `request.peer.address` is `local`. No header counts, nor a missing address, since a closed TCP connection has none either.
// systemd keeps only the port open, not this socket: a client of the socket is root, and can send the request again after a restart.
//
// `POST /v1/users/default/login` continues from step 6: `credentials/guess-guard.ts` may refuse it without starting a program; `auth/pam-slots.ts` limits
// the number of PAM checks at once and gives each client its turn; `auth/pam.ts` runs pamtester at nice 5, so that requests of logged-in users come
// before a flood of logins; `auth/accounts.ts` finds the account and its groups, and reads the local files each time;
// `auth/sessions.ts` makes the tokens. `auth/login.ts` sends every refusal at the same time after the request, so that its reason cannot be
// measured.
//
// A process may have several apps (`createServer` in `api/server.ts`). Each has its own reply headers and form of errors (`api/replies.ts`), its
// own rate limits or none, its own routes with 404, 405 and counts, and its own path parameter that may contain slashes (`slashParameter`; the
// router ends a parameter at a slash, so `api/route-table.ts` encodes the slashes before it). The rules for connections belong to the listener,
// which `createHttpsServer` makes. The apps are the service API and the registry (`content/registry`), which is not in the API document; the import
// law names the folders of apps, which may use `api`. `test/host/api/two-apps.test.ts` runs two apps side by side, and one below a path of a
// listener.

import {
  type FastifyInstance,
  type FastifyReply,
  fastify,
  LogController,
  type FastifyBaseLogger,
  type FastifyRequest,
  type FastifyServerFactory,
} from 'fastify'
import { createHistogram, type Histogram, type HistogramFigures } from '../base/sample.ts'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { Logger } from 'pino'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { Lines } from '../system/anonymous-log.ts'
import { addAudit, type RequestAudit } from './audit-hook.ts'
import { addEtags } from './etag.ts'
import { addFullDisk, type DiskSpace } from './full-disk.ts'
import { addStandstill } from './standstill.ts'
import { addErrorReplies, createParserErrorReply, noRoute, toAppError, addRequestLog } from './errors.ts'
import { addGuard, type GuardOptions } from './guard.ts'
import { addLifecycle } from './lifecycle.ts'
import { clientFromAnywhere, type ClientOf } from '../base/client.ts'
import { watchReplies } from './connection/local-server.ts'
import { nameOf } from './connection/connections.ts'
import { createPeers } from './connection/peer.ts'
import { nameCaller } from './connection/waiting-replies.ts'
import { createRateLimiter, type RateLimitOptions } from './rate/limit.ts'
import { apiReplies, type Replies, requestIdOf } from './replies.ts'
import { addJsonBodies } from './json-body.ts'
import { collectRoutes, type RouteTable } from './route-table.ts'
import { createSerializerCompiler, createValidatorCompiler } from './compilers.ts'

/** The requests of one route since the start. */
interface RequestFigures {
  readonly method: string
  /** Pattern as declared, never the requested path. */
  readonly route: string
  /** Replies by status. */
  readonly statuses: ReadonlyMap<number, number>
  /** Seconds from the start of a request to the end of its reply. */
  readonly durations: HistogramFigures
}

interface RequestCounts {
  /** The routes that have answered a request. */
  figures(): RequestFigures[]
  /** Counts a refusal of a request that matches no route. */
  countUnrouted(status: number, reply: FastifyReply): void
}

interface Row {
  readonly method: string
  readonly route: string
  readonly statuses: Map<number, number>
  readonly durations: Histogram
}

/** Labels for every path and method without a route, so that no client can create a new row. */
const unrouted = { method: 'other', route: 'none' } as const

// A read takes a fraction of a millisecond, a refused login three seconds.
const upperBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Counts answered requests. A row for each route is created when the route is added, so a request costs only a few
 * additions. Requests whose client disconnects before the reply are not counted.
 */
export function addRequestCounts(app: FastifyInstance): RequestCounts {
  const rows: Row[] = []
  const open = (method: string, route: string): Row => {
    const row = { method, route, statuses: new Map(), durations: createHistogram(upperBounds) }
    rows.push(row)
    return row
  }
  const other = open(unrouted.method, unrouted.route)

  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      const row = open(method, route.url)
      const count: typeof route.onResponse = (request, reply, done) => {
        if (request.method === method) add(row, reply.statusCode, reply)
        done()
      }
      route.onResponse = [count, ...[route.onResponse ?? []].flat()]
    }
  })

  return {
    figures: () =>
      rows
        .filter(({ statuses }) => statuses.size > 0)
        .map(({ method, route, statuses, durations }) => ({
          method,
          route,
          statuses,
          durations: durations.figures(),
        })),
    countUnrouted: (status, reply) => add(other, status, reply),
  }
}

function add({ statuses, durations }: Row, status: number, { elapsedTime }: FastifyReply): void {
  statuses.set(status, (statuses.get(status) ?? 0) + 1)
  durations.observe(elapsedTime / 1_000)
}

interface ServerOptions extends GuardOptions {
  readonly log: Logger
  /** Log for the lines that callers without a session cause; the default is `log`. */
  readonly anonymousLog?: Lines
  /** Largest JSON body, bytes. */
  readonly bodyLimitBytes: number
  /** Makes the HTTPS server; without it, requests come only by `inject`. */
  readonly serverFactory?: FastifyServerFactory
  /** Limits on the requests of one client; without it there are none. */
  readonly rateLimits?: Omit<RateLimitOptions, 'log'>
  /** Records changes; without it, changes are not recorded. */
  readonly audit?: RequestAudit
  /** Admits changes by the space on the disk; without it, all are admitted. */
  readonly disk?: DiskSpace
  /** The refusal of changes while the host is being reset; without it, or while it gives none, they are served. */
  readonly standstill?: (() => AppError | undefined) | undefined
  /** The client that an address belongs to; the default knows no address of this host but loopback. */
  readonly clientOf?: ClientOf
  /** Whether an address belongs to a trusted proxy; the default knows none. */
  readonly isProxy?: (address: string) => boolean
  /** Whether a connection came over the local socket; the default is no. */
  readonly isLocal?: (socket: Socket) => boolean
  /** Reply form of the app; the default is the form of the service API. */
  readonly replies?: Replies
  /**
   * Name of the path parameter that may contain slashes, for example `name` in `/v2/:name/blobs/:digest`; without it, none may.
   * It applies to requests over the server of the app and by `inject`, but not by `app.routing`.
   */
  readonly slashParameter?: string
  /** Aborted when the stop begins, which ends long replies; without it, they are cut off. */
  readonly stopping?: AbortSignal
}

// The daemon keeps up to this much of a body in memory for a client without a session, on every connection.
const openBodyLimitBytes = 131_072

const noRefusals: ReadonlyMap<string, number> = new Map()

/**
 * An app: error replies, session guard, validation, headers, rate limits and the request log. It contains no feature; rooms add
 * their routes. A process may have several apps, each with its own options and counts. The rules for
 * connections belong to the server that `serverFactory` makes.
 */
export function createServer({
  log,
  anonymousLog = log,
  bodyLimitBytes,
  serverFactory,
  rateLimits,
  audit,
  disk,
  standstill,
  clientOf = clientFromAnywhere,
  isProxy,
  isLocal = () => false,
  replies = apiReplies,
  slashParameter,
  stopping = new AbortController().signal,
  ...guard
}: ServerOptions) {
  // Leaves out Fastify's own line for each address it listens on.
  const quiet: FastifyBaseLogger = log.child({}, { level: log.isLevelEnabled('warn') ? 'warn' : log.level })

  const peers = createPeers({ isLocal, clientOf, isProxy })
  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    request.peer = peers.ofRequest(request.raw)
    if (request.peer.isProxied) nameCaller(reply.raw, `client ${request.peer.client.name}`)
    reply.headers(replies.headers).header('x-request-id', request.id)
  }
  const rewriteUrl = ({ url = '/' }: IncomingMessage) => routes.encodeSlashes(url)
  const limiter = rateLimits?.settings.enabled ? createRateLimiter({ ...rateLimits, log }) : undefined
  const app = fastify({
    loggerInstance: quiet,
    // A child logger for each request would cost more than the rest of a read; the lines contain the ref themselves.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: ({ headers }) => requestIdOf(headers),
    bodyLimit: bodyLimitBytes,
    // Requests in flight may finish; idle connections are closed at once.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: createParserErrorReply({
      lines: anonymousLog,
      replies,
      peerOf: peers.ofSocket,
      replyOn: (socket) => replyOn(socket),
    }),
    // No hook runs for a path that cannot be routed.
    frameworkErrors(error, request, reply) {
      begin(request, reply)
      void refuse(limiter?.check(request, reply) ?? toAppError(error), request, reply)
    },
    // The name of a repository may have a host and a path of 255 characters each.
    routerOptions: { maxParamLength: slashParameter === undefined ? 256 : 1_024 },
    ...(slashParameter === undefined ? {} : { rewriteUrl }),
    ...(serverFactory ? { serverFactory } : {}),
  }).withTypeProvider<TypeBoxTypeProvider>()

  const replyOn = watchReplies(app.server)
  addJsonBodies(app)
  app.setValidatorCompiler(createValidatorCompiler())
  app.setSerializerCompiler(createSerializerCompiler())
  app.decorate('stopping', stopping)
  app.decorate('replies', replies)
  app.decorateRequest('peer')
  app.addHook('onRequest', (request, reply, done) => {
    begin(request, reply)
    done(refuseEarly(request, reply))
  })
  // It counts for the proxy.
  const describeForwarded = ({ peer }: FastifyRequest): AppError | undefined =>
    peer.isUnreadable
      ? refusedField('X-Forwarded-For', 'has no address that can be read at its right end; correct the proxy')
      : undefined
  // Refuses requests that match no route or have a bad Host or X-Forwarded-For header, with their body unread. They count for the rate limit here,
  // since the limit of a route does not see them.
  const refuseEarly = (request: FastifyRequest, reply: FastifyReply): AppError | undefined => {
    const problem = describeHosts(request.raw) ?? describeForwarded(request)
    if (problem === undefined && !request.is404) return undefined
    const overLimit = limiter?.check(request, reply)
    if (overLimit) return overLimit
    return problem ?? noRoute(routes, request, reply)
  }
  app.addHook('onRoute', (route) => {
    const { access = 'open' } = route.config ?? {}
    if (access === 'open')
      route.bodyLimit = Math.min(route.bodyLimit ?? Infinity, bodyLimitBytes, openBodyLimitBytes)
  })
  const routes: RouteTable = collectRoutes(app, slashParameter)
  const requests = addRequestCounts(app)
  const { endRequests, recheckRequests } = addGuard(app, {
    ...guard,
    onAuthenticated(request, caller, reply) {
      nameCaller(reply.raw, `user ${nameOf(caller)}`)
      guard.onAuthenticated(request, caller, reply)
    },
  })
  // Added after the guard, so that its hook runs before the guard's: a flood without a token is limited too.
  limiter?.addTo(app)
  // Added after the guard, so that its hook runs first: refusals have the headers too.
  addLifecycle(app)
  addEtags(app)
  addRequestLog(app, log, anonymousLog)
  const auditUnrouted = audit && addAudit(app, audit)
  // Added after the audit, so that its hooks run before the intent is written.
  if (disk) addFullDisk(app, disk)
  if (standstill) addStandstill(app, standstill)
  const refuse = addErrorReplies(app, {
    replies,
    onUnrouted(request, reply, error) {
      requests.countUnrouted(error.status, reply)
      return auditUnrouted?.(request, reply, error)
    },
    anonymousLog,
  })
  return {
    app,
    routes,
    requests,
    endRequests,
    recheckRequests,
    rateRefusals: () => limiter?.refusals() ?? noRefusals,
  }
}

/** The problem with the Host fields of a request (RFC 9112, 3.2). Node drops all but the first in `headers`. */
function describeHosts({ headers, rawHeaders, httpVersion }: IncomingMessage): AppError | undefined {
  const refused = (problem: string) => new AppError(generalErrors.BadRequest, problem)
  if (headers.host === undefined)
    return httpVersion === '1.1' ? refused('the Host header is missing') : undefined
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count > 1 ? refused('there is more than one Host header') : undefined
}
