import { ServerResponse, type IncomingMessage, type Server } from 'node:http'
import type { Server as HttpsServer } from 'node:https'

/** What a reply leaves unread of a body is read and thrown away up to here, and the connection lives on. */
export const drainedBytes = 65_536
// A client that is still sending gets this long to see the reply. More than it needs, and less than a flood would like.
const lingerMs = 2_000

/**
 * A response that reaches a client which is still sending a body that no handler wants. Node closes the connection as soon as
 * such a response has ended, and the reset that follows unread bytes overtakes the reply (RFC 9112, 9.6). So the whole reply is
 * sent, with `Connection: close`, and its end is said only when the client has closed, when its body has come to its end, or
 * after some time; meanwhile hardly anything is read (docs/adr/0015). The class goes to the server as its option `ServerResponse`.
 */
export class LingeringResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  private isLingering = false

  override writeHead(status: number, ...rest: unknown[]): this {
    // Not sooner: a header that was set and taken away again would keep Node from saying how long it waits for the next
    // request, and one reply must look like another.
    if (leavesBody(this.req)) this.setHeader('connection', 'close')
    return super.writeHead(status, ...(rest as []))
  }

  override end(...given: unknown[]): this {
    if (this.isLingering) return this
    if (!leavesBody(this.req) || this.writableEnded) return super.end(...(given as []))
    this.isLingering = true
    const [chunk] = given
    const bytes = typeof chunk === 'string' || chunk instanceof Uint8Array ? Buffer.from(chunk) : undefined
    // A client has to know where the reply ends before the connection does.
    if (!this.headersSent && bytes) this.setHeader('content-length', bytes.length)
    this.cork()
    this.flushHeaders()
    if (bytes) this.write(bytes)
    this.uncork()
    const end = () => {
      clearTimeout(timer)
      super.end(given.find((each) => typeof each === 'function') as (() => void) | undefined)
    }
    const timer = setTimeout(end, lingerMs).unref()
    this.once('close', () => clearTimeout(timer))
    this.req.once('end', end)
    readSome(this.req)
    return this
  }
}

/** Whether more of the body than is thrown away may still come. */
function leavesBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false
  const { 'content-length': length = '0', 'transfer-encoding': encoding, expect } = headers
  if (encoding === undefined && length === '0') return false
  return encoding !== undefined || expect !== undefined || Number(length) > drainedBytes
}

function readSome(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > drainedBytes) request.pause()
  })
  // Node drains only bodies that no reader has begun to read.
  request.read(0)
}

/**
 * Keeps bodies that no handler wants from being asked for.
 * - `100 Continue` goes out when a handler begins to read the body, not before: a refusal comes instead of it.
 * - A request that says neither length nor encoding has no body (RFC 9112, 6.3), whatever type it names.
 */
export function leaveUnreadBodies(server: Server | HttpsServer): void {
  server.prependListener('request', onRequest)
  // A listener of this event has to hand the request on, to all listeners of requests.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    request.on('newListener', (event) => {
      const isReader = event === 'data' || event === 'readable'
      if (isReader && !response.headersSent && !response.writableEnded) response.writeContinue()
    })
    server.emit('request', request, response)
  })
  // An unknown expectation may be ignored (RFC 9110, 10.1.1); Node would refuse it with nothing in its reply.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

function onRequest(request: IncomingMessage): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  if (encoding !== undefined || Number(length) !== 0) return
  // The type of an empty body: its parser would wait for an end that never comes (`optimizeEmptyRequests`).
  if (request.readableEnded) delete request.headers['content-type']
}
