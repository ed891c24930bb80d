import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

declare module 'node:http' {
  interface OutgoingMessage {
    /** Of Node, undocumented: makes the head of the status line, which ends with CRLF, and the header fields. */
    _storeHeader(statusLine: string, fields: unknown): void
  }
}

// A library for this costs a third of the throughput of a small reply.
const securityFields = Object.freeze({
  'strict-transport-security': 'max-age=63072000',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
})

const lineOf = (name: string, value: string) => `${name}: ${value}\r\n`

/** The same, ready for the wire. */
export const securityLines = Object.entries(securityFields)
  .map((field) => lineOf(...field))
  .join('')

/**
 * A response of which some header fields go out as they are. Fastify and Node look at each field three times; for those
 * that every reply carries, and that are the daemon's own words, this was a tenth of a read (docs/adr/0015).
 */
export class HeadedResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  /** Of the request, for the field `x-request-id`; empty while nobody has said it. */
  requestId = ''
  private lines = ''

  /** Adds a field, once; name and value must be able to stand in a header. */
  addLine(name: string, value: string): void {
    this.lines += lineOf(name, value)
  }

  override _storeHeader(statusLine: string, fields: unknown): void {
    const id = this.requestId === '' ? '' : lineOf('x-request-id', this.requestId)
    super._storeHeader(statusLine + securityLines + id + this.lines, fields)
  }
}

/** The reply that is in the making on a socket. Node links the two by this private field alone, and asks it itself. */
export const replyOn = (socket: Socket): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined

/** Says what every reply says, and the id of the request. */
export function beginHead(reply: FastifyReply, requestId: string): void {
  if (reply.raw instanceof HeadedResponse) reply.raw.requestId = requestId
  // A request that came by `inject` has no connection, and a response of its own.
  else reply.headers(securityFields).header('x-request-id', requestId)
}

/** Adds a field of the daemon's own words to the reply, once; name and value must be able to stand in a header. */
export function addField(reply: FastifyReply, name: string, value: string): void {
  if (reply.raw instanceof HeadedResponse) reply.raw.addLine(name, value)
  else void reply.header(name, value)
}
