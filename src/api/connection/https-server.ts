import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import type { FastifyServerFactory } from 'fastify'
import type { Logger } from 'pino'
import type { Lines } from '../../system/stranger-log.ts'
import type { ClientOf } from '../../base/client.ts'
import type { Caller, IsGone } from '../access.ts'
import { apiReplies, type Replies } from '../replies.ts'
import { watchBodyRate, type BodyRate } from './body-rate.ts'
import { limitConnections, type ConnectionLimits, type Connections } from './connections.ts'
import { applyTimeouts, serverOptions, type Timeouts } from './timeouts.ts'
import { tlsOptions, type TlsMaterial } from '../../system/tls-options.ts'
import { leaveUnreadBodies } from './unread-body.ts'

export interface HttpsServerOptions {
  readonly timeouts: Timeouts
  readonly connections: Omit<ConnectionLimits, 'clientOf' | 'log' | 'strangers'>
  /** Tells who counts as one client. */
  readonly clientOf: ClientOf
  readonly body: BodyRate
  readonly material: TlsMaterial
  /** How the app replies that it serves; without it as the service API does. */
  readonly replies?: Replies
  readonly log: Logger
  /** Takes the lines that callers without a session cause; without it the log does. */
  readonly strangers?: Lines
}

/** The HTTPS server with all its limits. Fastify makes it when it is ready for it. */
export interface HttpsServer {
  readonly serverFactory: FastifyServerFactory
  /** New connections get this certificate; open ones live on. */
  useCertificate(material: TlsMaterial): void
  /** The connection of a logged-in user is not closed in favour of others. */
  markAuthenticated(socket: Socket, caller: Caller): void
  /** It is again when its caller is gone. */
  markUnauthenticated(isGone: IsGone): void
  /** Open connections, from the accepted TCP connection on. */
  connections(): number
  /**
   * Ends connections on which no request is in flight, for the stop: Node's own `closeIdleConnections()` passes over those that
   * have not asked anything yet. A new one is about to ask in most cases, and gets its answer first.
   */
  closeIdle(): void
  /** Ends what is still open. */
  closeConnections(): void
  /** Stops watching; nothing is left that keeps the process alive. */
  stop(): void
}

// A connection that was accepted just before a stop has this long to ask.
const firstRequestMs = 1_000

export function createHttpsServer({
  timeouts,
  connections,
  body,
  material,
  log,
  strangers,
  clientOf,
  replies = apiReplies,
}: HttpsServerOptions): HttpsServer {
  let made: { server: Server; limits: Connections; stopRate: () => void } | undefined
  return {
    serverFactory(handler) {
      const server = createServer({ ...tlsOptions(material), ...serverOptions(timeouts) }, handler)
      applyTimeouts(server, timeouts)
      leaveUnreadBodies(server)
      const limits = limitConnections(server, { ...connections, clientOf, log, strangers })
      made = { server, limits, stopRate: watchBodyRate(server, body, replies) }
      return server
    },
    useCertificate: (next) => made?.server.setSecureContext(tlsOptions(next)),
    markAuthenticated: (socket, caller) => made?.limits.markAuthenticated(socket, caller),
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
