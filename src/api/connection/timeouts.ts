import type { ApiSettings } from '../config.ts'
import type { Server as HttpServer, ServerOptions as HttpOptions } from 'node:http'
import type { Server, ServerOptions } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { GatheredRequest } from './gathered-request.ts'
import { LingeringResponse } from './unread-body.ts'

/** All in milliseconds; the section `api.timeouts` of the configuration. */
export type Timeouts = ApiSettings['timeouts']

/** What every server is made with. */
export const httpOptions = {
  // headersTimeout is looked at this often; Node's own 30 s would make 5 s into 35.
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  // Node would refuse with nothing in its reply; the edge refuses itself.
  requireHostHeader: false,
  // Reads have no body: without the events of an empty stream they cost a tenth less. See unread-body.ts for what has no
  // body and should.
  optimizeEmptyRequests: true,
  IncomingMessage: GatheredRequest,
  ServerResponse: LingeringResponse,
} as const satisfies HttpOptions

/** What can be said only when the server is made: `https.createServer({ ...tlsOptions(…), ...serverOptions(…) })`. */
export function serverOptions({ handshakeMs }: Timeouts): ServerOptions {
  return { ...httpOptions, handshakeTimeout: handshakeMs }
}

/** The rest, server-wide. After Fastify has made the server, since it sets its own numbers. */
export function applyTimeouts(server: Server | HttpServer, { headersMs, idleMs, stalledMs }: Timeouts): void {
  server.headersTimeout = headersMs
  // Never by total time: an upload may last an hour. `watchBodyRate` looks after slow ones.
  server.requestTimeout = 0
  // Node tells the client this number and waits a second longer, so that the client closes first.
  server.keepAliveTimeout = idleMs
  server.timeout = stalledMs
  // Node hands a failed or timed-out handshake to `clientError` too, and a listener that answers there would wait for
  // the handshake for ever.
  server.on('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy())
}
