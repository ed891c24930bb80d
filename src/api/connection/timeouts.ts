import type { ApiSettings } from '../config.ts'
import type { Server, ServerOptions } from 'node:http'
import { CountedResponse } from './waiting-replies.ts'

/** The section `api.timeouts` of the configuration, in milliseconds. */
export type Timeouts = ApiSettings['timeouts']

/** Options of every server. */
export const httpOptions = {
  // Interval at which headersTimeout is checked; Node's default of 30 s would turn 5 s into 35.
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  // Node would refuse with an empty reply; `server.ts` refuses with the error body.
  requireHostHeader: false,
  // Reads have no body: without the events of an empty stream they cost a tenth less. See unread-body.ts for requests with
  // a content type but no body.
  optimizeEmptyRequests: true,
  ServerResponse: CountedResponse,
} as const satisfies ServerOptions

/** Sets the timeouts of a server but the one of handshakes. To be called after Fastify has created the server, since Fastify sets its own values. */
export function applyTimeouts(server: Server, { headersMs, idleMs, stalledMs }: Timeouts): void {
  server.headersTimeout = headersMs
  // No limit on the total time: an upload may last an hour. `watchBodyRate` refuses slow bodies.
  server.requestTimeout = 0
  // Node sends this value to the client and waits a second longer, so that the client closes first.
  server.keepAliveTimeout = idleMs
  server.timeout = stalledMs
}
