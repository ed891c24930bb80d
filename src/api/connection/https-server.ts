import type { ApiSettings } from '../config.ts'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { AppError } from '../../errors/app-error.ts'
import { apiErrors } from '../codes.ts'
import { refuseBody, type Replies, requestIdOf, apiReplies } from '../replies.ts'
import { FedSocket, isBeingRead } from './fed-socket.ts'
import type { Socket } from 'node:net'
import type { FastifyServerFactory } from 'fastify'
import type { Logger } from 'pino'
import type { Lines } from '../../system/anonymous-log.ts'
import { canonicalAddress, isLoopback } from '../../base/address.ts'
import type { ClientOf } from '../../base/client.ts'
import type { Caller, IsGone } from '../access.ts'
import { limitConnections, type ConnectionLimits, type Connections } from './connections.ts'
import { FedServer, type Flow, type Timeouts } from './fed-server.ts'
import { tlsOptions, type TlsMaterial } from '../../system/tls-options.ts'

type BodyRate = Omit<ApiSettings['body'], 'limitBytes'>

interface Body {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Monotonic milliseconds and bytes of the connection at the start of the window. */
  since: number
  bytes: number
  refused: boolean
}

/**
 * Refuses requests whose body arrives below a rate, however long the whole body takes. While the handler does not read
 * arrived bytes, and while this process does not run, the time does not count: then the host is slow, not the client.
 * The reader of the body is notified (`replies.ts`) and replies; if nothing reads the body, this function replies 408.
 * @param replies form of that reply
 * @returns a function that stops watching
 */
export function watchBodyRate(
  server: Server,
  { minimumBytesPerSecond, windowSeconds }: BodyRate,
  { headers, errorType, errorBody }: Replies,
): () => void {
  const bodies = new Set<Body>()
  const windowMs = windowSeconds * 1_000
  const everyMs = Math.min(1_000, windowMs / 10)
  const message = `the body arrived below ${minimumBytesPerSecond} bytes a second over ${windowSeconds} seconds; send it faster`
  let timer: NodeJS.Timeout | undefined
  let checkedAt = 0

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    if (encoding === undefined && (length === undefined || Number(length) === 0)) return
    const body = {
      request,
      response,
      since: performance.now(),
      bytes: request.socket.bytesRead,
      refused: false,
    }
    bodies.add(body)
    response.once('close', () => {
      if (!body.refused) bodies.delete(body)
    })
    // One timer for all, and only while a body is arriving.
    if (timer) return
    checkedAt = performance.now()
    timer = setInterval(check, everyMs).unref()
  }

  function check(): void {
    const now = performance.now()
    // Bytes may wait in the kernel for a process that was held up.
    const wasHeldUp = now - checkedAt > 2 * everyMs
    checkedAt = now
    for (const body of bodies) {
      const { request } = body
      if (body.refused) {
        // The reader may have to remove its stored bytes, and to record the refusal, before the app replies.
        if (!body.response.writableFinished && !request.socket.destroyed && now - body.since < windowMs)
          continue
        bodies.delete(body)
        request.socket.destroy()
      } else if (request.complete || request.destroyed) {
        bodies.delete(body)
      } else if (wasHeldUp || waitingBytes(request) > 0 || isUnasked(request)) {
        beginWindow(body, now)
      } else if (now - body.since >= windowMs) {
        const needed = (minimumBytesPerSecond * (now - body.since)) / 1_000
        if (request.socket.bytesRead - body.bytes < needed) refuse(body, now)
        else beginWindow(body, now)
      }
    }
    if (bodies.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  function beginWindow(body: Body, now: number): void {
    body.since = now
    body.bytes = body.request.socket.bytesRead
  }

  // A later check closes the connection: once the reply was sent, or after another window without one.
  function refuse(body: Body, now: number): void {
    const { request, response } = body
    body.refused = true
    body.since = now
    if (response.headersSent) {
      request.socket.destroy()
      return
    }
    const error = new AppError(apiErrors.RequestTimeout, message)
    if (refuseBody(request, response, error)) return
    const id = requestIdOf(request.headers)
    const text = JSON.stringify(errorBody(error, id))
    response.writeHead(error.status, {
      ...headers,
      'content-type': errorType,
      'content-length': Buffer.byteLength(text),
      'x-request-id': id,
      connection: 'close',
    })
    response.end(text)
  }

  server.on('request', onRequest)
  return () => {
    server.off('request', onRequest)
    clearInterval(timer)
    timer = undefined
  }
}

/** Whether the client waits for `100 Continue`, which is sent when the body is read: an upload may wait for its place before. */
const isUnasked = (request: IncomingMessage): boolean =>
  request.headers.expect !== undefined && request.readableFlowing === null && !isBeingRead(request)

/** Bytes that have arrived, and that the host has not read yet. */
function waitingBytes({ readableLength, socket }: IncomingMessage): number {
  return (
    readableLength +
    ((socket as unknown) instanceof FedSocket ? (socket as unknown as FedSocket).heldBytes : 0)
  )
}

export interface HttpsServerOptions {
  readonly timeouts: Timeouts
  readonly connections: Omit<ConnectionLimits, 'clientOf' | 'isProxy' | 'log' | 'anonymousLog'>
  /** The client that an address belongs to. */
  readonly clientOf: ClientOf
  /** Whether an address belongs to a trusted proxy; by default none does. */
  readonly isProxy?: (address: string) => boolean
  readonly body: BodyRate
  /** Without it the server speaks plain HTTP, and may listen on loopback only. */
  readonly material: TlsMaterial | undefined
  /** The flow of all servers of this process; the default is one of its own. */
  readonly flow?: Flow | undefined
  /** Reply form of its app; the default is the form of the service API. */
  readonly replies?: Replies
  readonly log: Logger
  /** Log for the lines that callers without a session cause; the default is `log`. */
  readonly anonymousLog?: Lines
}

/** The HTTPS server, or one of plain HTTP, with all its limits. Fastify creates it by `serverFactory`. */
interface HttpsServer {
  readonly serverFactory: FastifyServerFactory
  /** Sets the certificate for new connections; open ones stay open. */
  useCertificate(material: TlsMaterial): void
  /** Keeps the connection of a logged-in user from being closed in favour of others. */
  markAuthenticated(socket: Socket, caller: Caller, response: ServerResponse): void
  /** Reverts `markAuthenticated` for connections whose caller is gone. */
  markUnauthenticated(isGone: IsGone): void
  /** Open connections, from the accepted TCP connection on. */
  connections(): number
  /** When a connection was accepted, monotonic milliseconds. */
  acceptedAt(socket: Socket): number | undefined
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
  // Connections of a proxy carry many clients. On this machine each address has turns of its own: all of them are one client elsewhere.
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
    acceptedAt: (socket) => made?.limits.acceptedAt(socket),
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
