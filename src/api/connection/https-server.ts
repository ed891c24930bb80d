import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyServerFactory } from 'fastify'
import type { Logger } from 'pino'
import type { Lines } from '../../system/anonymous-log.ts'
import { canonicalAddress, isLoopback } from '../../base/address.ts'
import type { ClientOf } from '../../base/client.ts'
import type { Caller, IsGone } from '../access.ts'
import { apiReplies, type Replies } from '../replies.ts'
import { watchBodyRate, type BodyRate } from './body-rate.ts'
import { limitConnections, type ConnectionLimits, type Connections } from './connections.ts'
import { FedServer, type Flow } from './fed-server.ts'
import type { Timeouts } from './timeouts.ts'
import { tlsOptions, type TlsMaterial } from '../../system/tls-options.ts'

export interface HttpsServerOptions {
  readonly timeouts: Timeouts
  readonly connections: Omit<ConnectionLimits, 'clientOf' | 'isProxy' | 'log' | 'anonymousLog'>
  /** The client that an address belongs to. */
  readonly clientOf: ClientOf
  /** Whether an address is that of a trusted proxy; by default there are none. */
  readonly isProxy?: (address: string) => boolean
  readonly body: BodyRate
  /** Without it the server is one of plain HTTP, which may listen on loopback only. */
  readonly material: TlsMaterial | undefined
  /** That of all servers of this process; the default is one of its own. */
  readonly flow?: Flow | undefined
  /** How its app replies; the default is the form of the service API. */
  readonly replies?: Replies
  readonly log: Logger
  /** Log for the lines that callers without a session cause; the default is `log`. */
  readonly anonymousLog?: Lines
}

/** The HTTPS server, or one of plain HTTP, with all its limits. Fastify creates it by `serverFactory`. */
export interface HttpsServer {
  readonly serverFactory: FastifyServerFactory
  /** Sets the certificate for new connections; open ones stay open. */
  useCertificate(material: TlsMaterial): void
  /** Keeps the connection of a logged-in user from being closed in favour of others. */
  markAuthenticated(socket: Socket, caller: Caller, response: ServerResponse): void
  /** Reverts `markAuthenticated` for connections whose caller is gone. */
  markUnauthenticated(isGone: IsGone): void
  /** Open connections, from the accepted TCP connection on. */
  connections(): number
  /**
   * Closes connections on which no request is in flight, for the stop; Node's own `closeIdleConnections()` skips those without
   * any request yet. It first waits for the first request of new connections, and answers it.
   */
  closeIdle(): void
  /** Closes all connections that are still open. */
  closeConnections(): void
  /** Stops all timers and listeners, so that nothing keeps the process alive. */
  stop(): void
}

// A connection that was accepted just before a stop has this long to send a request.
const firstRequestMs = 1_000

export function createHttpsServer({
  timeouts,
  connections,
  body,
  material,
  log,
  anonymousLog,
  clientOf,
  isProxy,
  flow,
  replies = apiReplies,
}: HttpsServerOptions): HttpsServer {
  // Those of a proxy are of many clients. On this machine each address has turns of its own: all of them are one client elsewhere.
  const turnNameOf = ({ remoteAddress }: Socket): string | undefined => {
    const address = canonicalAddress(remoteAddress ?? '')
    if (isProxy?.(address) === true) return undefined
    return isLoopback(address) ? `address ${address}` : `client ${clientOf(address).name}`
  }
  let made: { server: FedServer; limits: Connections; stopRate: () => void } | undefined
  return {
    serverFactory(handler) {
      const server = new FedServer({ timeouts, material, turnNameOf, ...(flow ? { flow } : {}) }, handler)
      const limits = limitConnections(server, { ...connections, clientOf, isProxy, log, anonymousLog })
      made = { server, limits, stopRate: watchBodyRate(server, body, replies) }
      return server
    },
    useCertificate: (next) => made?.server.setSecureContext(tlsOptions(next)),
    markAuthenticated: (socket, caller, response) => made?.limits.markAuthenticated(socket, caller, response),
    markUnauthenticated: (isGone) => made?.limits.markUnauthenticated(isGone),
    connections: () => made?.limits.count() ?? 0,
    closeIdle() {
      setTimeout(() => made?.limits.closeIdle(), firstRequestMs).unref()
    },
    closeConnections: () => made?.server.closeAllConnections(),
    stop() {
      made?.limits.stop()
      made?.stopRate()
    },
  }
}
