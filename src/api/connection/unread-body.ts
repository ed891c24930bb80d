import { ServerResponse, type IncomingMessage, type Server } from 'node:http'

/** Up to this many bytes of an unread body are read and thrown away after the reply, and the connection stays open. */
export const drainedBytes = 65_536
// A client that is still sending has this long to read the reply: long enough for clients, too short to help a flood.
const lingerMs = 2_000

/**
 * A response that reaches a client which is still sending a body that no handler reads. Node closes the connection as soon as
 * such a response has ended, and the reset that follows unread bytes overtakes the reply (RFC 9112, 9.6). So the whole reply is
 * sent, with `Connection: close`, but the response ends only when the client has closed, when the body is complete, or after
 * two seconds; until then at most 64 KiB are read (docs/adr/0015). The class is passed to the server as its option
 * `ServerResponse`.
 */
export class LingeringResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  private isLingering = false

  override writeHead(status: number, ...rest: unknown[]): this {
    // Not sooner: after a header that was set and removed again, Node leaves out `Keep-Alive`, and all replies must look alike.
    if (leavesBody(this.req)) this.setHeader('connection', 'close')
    return super.writeHead(status, ...(rest as []))
  }

  override end(...given: unknown[]): this {
    if (this.isLingering) return this
    if (!leavesBody(this.req) || this.writableEnded) return super.end(...(given as []))
    this.isLingering = true
    const [chunk] = given
    const bytes = typeof chunk === 'string' || chunk instanceof Uint8Array ? Buffer.from(chunk) : undefined
    // A client has to find the end of the reply before the connection closes.
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

/** Whether more of the body may still arrive than may be thrown away. */
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
 * Keeps the server from requesting bodies that no handler reads.
 * - `100 Continue` is sent when a handler begins to read the body; a refusal is sent instead of it.
 * - A request with neither length nor encoding has no body (RFC 9112, 6.3), whatever its content type.
 */
export function leaveUnreadBodies(server: Server): void {
  server.prependListener('request', onRequest)
  // A listener of this event has to emit `request` itself.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // A reader may listen more than once.
    const onListener = (event: string | symbol) => {
      if (event !== 'data' && event !== 'readable') return
      request.off('newListener', onListener)
      if (!response.headersSent && !response.writableEnded) response.writeContinue()
    }
    request.on('newListener', onListener)
    server.emit('request', request, response)
  })
  // An unknown expectation may be ignored (RFC 9110, 10.1.1); Node would refuse it with an empty reply.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

function onRequest(request: IncomingMessage): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  if (encoding !== undefined || Number(length) !== 0) return
  // With a content type, a body parser would wait for an `end` event that is not emitted (`optimizeEmptyRequests`).
  if (request.readableEnded) delete request.headers['content-type']
}
