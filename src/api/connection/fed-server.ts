import type { ApiSettings } from '../config.ts'
import { type Server, type ServerOptions, Server as HttpServer, type RequestListener } from 'node:http'
import {
  CountedResponse,
  createWaitingReplies,
  type WaitingReplies,
  leaveUnreadBodies,
} from './waiting-replies.ts'
import {
  createServer as createNetServer,
  type Server as NetServer,
  type AddressInfo,
  type Socket,
} from 'node:net'
import {
  createServer as createTlsServer,
  Server as TlsServer,
  type TLSSocket,
  type TlsOptions,
} from 'node:tls'
import { tlsOptions, type TlsMaterial } from '../../system/tls-options.ts'
import { FedSocket } from './fed-socket.ts'
import { createFeeder, type Feeder } from './feeder.ts'

/** The section `api.timeouts` of the configuration, in milliseconds. */
export type Timeouts = ApiSettings['timeouts']

/** Options of every server. */
const httpOptions = {
  // Interval at which headersTimeout is checked; Node's default of 30 s would turn 5 s into 35.
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  // Node would refuse with an empty reply; `server.ts` refuses with the error body.
  requireHostHeader: false,
  // Reads have no body: without the events of an empty stream they cost a tenth less. See waiting-replies.ts for requests with
  // a content type but no body.
  optimizeEmptyRequests: true,
  ServerResponse: CountedResponse,
} as const satisfies ServerOptions

/** Sets the timeouts of a server but the one of handshakes. To be called after Fastify has created the server, since Fastify sets its own values. */
function applyTimeouts(server: Server, { headersMs, idleMs, stalledMs }: Timeouts): void {
  server.headersTimeout = headersMs
  // No limit on the total time: an upload may last an hour. `watchBodyRate` refuses slow bodies.
  server.requestTimeout = 0
  // Node sends this value to the client and waits a second longer, so that the client closes first.
  server.keepAliveTimeout = idleMs
  server.timeout = stalledMs
}

/** State that the connections of all servers of this process share. */
export interface Flow {
  readonly feeder: Feeder
  readonly waiting: WaitingReplies
}

/** @param onClosed called for each connection that was closed since its replies waited */
export const createFlow = (onClosed?: (callerName: string) => void): Flow => ({
  feeder: createFeeder(),
  waiting: createWaitingReplies(onClosed ? { onClosed } : {}),
})

interface FedServerOptions {
  readonly timeouts: Timeouts
  /** Without it the server speaks plain HTTP. */
  readonly material?: TlsMaterial | undefined
  /** The flow of all servers of this process; the default is one of its own. */
  readonly flow?: Flow
  /** Connections with the same name take turns with each other; by default each has a turn of its own. */
  readonly turnNameOf?: (socket: Socket) => string | undefined
}

let connectionCount = 0

/**
 * An HTTP server whose parsers get the bytes of their connections by a feeder. `outer` listens, accepts and decrypts; each of its connections is
 * handed over by the event `connection`, for which Node documents any `Duplex`. So `connection` of this server announces a connection that is
 * ready for requests, and `connection` of `outer` an accepted socket.
 */
export class FedServer extends HttpServer {
  readonly outer: NetServer

  constructor(
    { timeouts, material, flow = createFlow(), turnNameOf = () => undefined }: FedServerOptions,
    handler?: RequestListener,
  ) {
    super(httpOptions, handler)
    const usual = { noDelay: true }
    this.outer = material
      ? createTlsServer({ ...tlsOptions(material), ...usual, handshakeTimeout: timeouts.handshakeMs })
      : createNetServer(usual)
    // An accessor of Node's own, which a class may not override by another one in TypeScript.
    Object.defineProperty(this, 'listening', { get: () => this.outer.listening })
    applyTimeouts(this, timeouts)
    leaveUnreadBodies(this)
    this.prependListener('request', (request, response) => {
      const { socket } = request as { socket: Socket | FedSocket }
      if (socket instanceof FedSocket) socket.owe(request, response)
    })
    this.outer.on('listening', () => this.emit('listening'))
    this.outer.on('error', (error) => this.emit('error', error))
    this.outer.on('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy())
    this.outer.on(material ? 'secureConnection' : 'connection', (socket: Socket) => {
      // At a limit of connections it is closed before.
      if (socket.destroyed) return
      // The client may end its half of the connection before its requests are parsed; but not during the handshake of TLS.
      socket.allowHalfOpen = true
      connectionCount += 1
      const turnName = turnNameOf(socket) ?? `connection ${connectionCount}`
      this.emit('connection', new FedSocket(socket, flow.feeder, turnName, flow.waiting))
    })
  }

  /** Sets the certificate for new connections. */
  setSecureContext(options: TlsOptions): void {
    if (this.outer instanceof TlsServer) this.outer.setSecureContext(options)
  }

  override emit(event: string, ...given: unknown[]): boolean {
    const [error, socket] = given
    const isLate = event === 'clientError' && isHeadersTimeout(error) && socket instanceof FedSocket
    if (isLate && socket.extendHeaders(this.headersTimeout, () => super.emit(event, ...given))) return true
    return super.emit(event, ...given)
  }

  override listen(...given: unknown[]): this {
    Reflect.apply(this.outer.listen.bind(this.outer), undefined, given)
    return this
  }

  override address(): AddressInfo | string | null {
    return this.outer.address()
  }

  override getConnections(callback: (error: Error | null, count: number) => void): this {
    this.outer.getConnections(callback)
    return this
  }

  override close(callback?: (error?: Error) => void): this {
    this.closeIdleConnections()
    this.outer.close((error) => {
      // It stops the timer for times of header fields, and emits `close`.
      super.close(() => callback?.(error))
    })
    return this
  }

  override ref(): this {
    this.outer.ref()
    return this
  }

  override unref(): this {
    this.outer.unref()
    return this
  }
}

/** Without a limit of a whole request it is the one of header fields. */
const isHeadersTimeout = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_HTTP_REQUEST_TIMEOUT'
