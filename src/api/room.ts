import type { FastifyInstance } from 'fastify'
import type { AddressInfo, Socket } from 'node:net'
import type { Mode } from '../base/role.ts'
import type { Client, ClientOf } from '../base/client.ts'
import { createNetworks } from '../base/address.ts'
import { sampleEach } from '../base/sample.ts'
import type { FiguresOf, Ground, Room } from '../root/room.ts'
import type { TlsMaterial } from '../system/tls-options.ts'
import type { about } from './about.ts'
import type { Authorize, Identify, IsGone } from './access.ts'
import type { RequestAudit } from './audit-hook.ts'
import type { ApiSettings } from './config.ts'
import type { DiskSpace } from './full-disk.ts'
import { createTally } from '../base/tally.ts'
import { createFlow, type Flow } from './connection/fed-server.ts'
import { createHttpsServer } from './connection/https-server.ts'
import type { KeptSettings } from './connection/connections.ts'
import { listen } from './connection/listen.ts'
import { createLocalServer } from './connection/local-server.ts'
import type { AppError } from '../errors/app-error.ts'
import type { RouteTable } from './route-table.ts'
import { addTicketParameter, ticketRoutes } from './routes-tickets.ts'
import type { RateRow } from './rate/rows.ts'
import { createServer } from './server.ts'
import { addSpelling } from './spelling.ts'
import type { Tickets } from './tickets.ts'

interface ApiOptions {
  readonly mode: Mode
  readonly material: TlsMaterial
  readonly audit: RequestAudit
  /** Admits changes by the space on the disk. */
  readonly disk: DiskSpace
  /** The refusal of changes while the host is being reset. */
  readonly standstill?: (() => AppError | undefined) | undefined
  readonly identify: Identify
  /** Tickets for downloads; without it there are none. */
  readonly tickets?: Tickets | undefined
  /** Decides about each caller; the default compares roles. */
  readonly authorize?: Authorize | undefined
  /** The user of an access token that is in memory; no signature is checked. */
  readonly holderOf: (accessToken: string) => string | undefined
  /** Whether a user has logged in from exactly this client. */
  readonly isKnownClient: (client: Client) => boolean
  /** A table of paths with their rates, in place of rates by resource. */
  readonly rateRows?: readonly RateRow[] | undefined
  /** Query parameters of all routes, beside those that a route declares. */
  readonly commonParameters?: readonly string[]
  /** Connections that stay open between rare requests; by default there are none. */
  readonly keptConnections?: KeptSettings | undefined
  /** The client that an address belongs to. */
  readonly clientOf: ClientOf
  /** Longest time of a request after its session has ended, milliseconds. */
  readonly longRequestMs?: number | undefined
}

/** The HTTPS port and root's own socket, with their limits. */
export interface Api extends Room {
  /** The rooms add their routes to it. */
  readonly app: FastifyInstance
  /** The flow of this process, for its other servers. */
  readonly flow: Flow
  /** All routes. */
  readonly table: RouteTable
  /** When a connection of the port was accepted, monotonic milliseconds; undefined for others. */
  acceptedAt(socket: Socket): number | undefined
  /** Sets the certificate for new connections. */
  useCertificate(material: TlsMaterial): void
  /** Ends the requests in flight whose session is gone; their connections count as those without a login again. */
  endSessions(isGone: IsGone): void
  /** Ends the requests in flight whose caller may not do them any more, or has a lower role now. */
  recheckRights(): void
  /** @param inherited how many sockets systemd has passed to the daemon */
  listen(inherited: number): Promise<AddressInfo>
  /** Finishes the requests in flight, then closes all connections. */
  close(): Promise<void>
}

// Requests in flight have this long to finish; TimeoutStopSec of the unit is a little longer.
const drainMs = 10_000

/** Builds the port; it does not listen yet. */
export function createApi(ground: Ground<{ readonly api: ApiSettings }>, own: ApiOptions): Api {
  const { stopping, clock, log, anonymousLog } = ground
  const { clientOf } = own
  const settings = ground.config.api
  const isProxy = createNetworks(settings.trustedProxies)
  const closed = createTally((counts) =>
    log.warn(counts, 'connections were closed: their clients did not read replies of megabytes that waited'),
  )
  const flow = createFlow(() => closed.add('unread'))
  const https = createHttpsServer({
    ...settings,
    flow,
    material: own.material,
    clientOf,
    isProxy,
    log,
    anonymousLog,
    connections: { ...settings.connections, kept: own.keptConnections },
  })
  const local = createLocalServer({ path: settings.socket.path, timeouts: settings.timeouts, flow, log })
  const { app, routes, requests, endRequests, recheckRequests, rateRefusals } = createServer({
    log,
    anonymousLog,
    bodyLimitBytes: settings.body.limitBytes,
    serverFactory: https.serverFactory,
    rateLimits: {
      settings: settings.rateLimits,
      rows: own.rateRows,
      holderOf: own.holderOf,
      isKnownClient: own.isKnownClient,
      monotonic: () => clock.monotonic(),
    },
    mode: own.mode,
    audit: own.audit,
    disk: own.disk,
    standstill: own.standstill,
    identify: own.identify,
    redeem: own.tickets?.redeem,
    authorize: own.authorize,
    clientOf,
    isProxy,
    onAuthenticated: (request, caller, reply) => https.markAuthenticated(request.socket, caller, reply.raw),
    isLocal: local.hasAccepted,
    stopping,
    ...(own.longRequestMs === undefined ? {} : { longRequestMs: own.longRequestMs }),
  })

  addSpelling(app, own.commonParameters ?? [])
  const { tickets } = own
  if (tickets) addTicketParameter(app)

  return {
    app,
    flow,
    table: routes,
    acceptedAt: https.acceptedAt,
    async routes(rooms) {
      if (tickets) await ticketRoutes(rooms, { tickets, table: routes })
    },
    useCertificate: https.useCertificate,
    endSessions(isGone) {
      endRequests(isGone)
      https.markUnauthenticated(isGone)
    },
    recheckRights: recheckRequests,
    listen: (inherited) => listen(app, { ...settings, inherited, local }),
    async close() {
      const deadline = setTimeout(() => {
        https.closeConnections()
        local.closeConnections()
      }, drainMs)
      https.closeIdle()
      await Promise.all([app.close(), local.close()])
      clearTimeout(deadline)
      https.stop()
      closed.stop()
    },
    figures(): FiguresOf<typeof about.families> {
      const counts = requests.figures()
      return {
        edgehostd_http_requests_total: counts.flatMap(({ method, route, statuses }) =>
          sampleEach(
            statuses,
            ([status]) => ({ method, route, status: String(status) }),
            ([, value]) => value,
          ),
        ),
        edgehostd_http_request_duration_seconds: sampleEach(
          counts,
          ({ method, route }) => ({ method, route }),
          ({ durations }) => durations,
        ),
        edgehostd_http_connections: https.connections(),
        edgehostd_rate_limit_refusals_total: sampleEach(
          rateRefusals(),
          ([resource]) => ({ resource }),
          ([, value]) => value,
        ),
      }
    },
  }
}
