import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'

/** What a reply leaves unread of a body is read and thrown away up to here, and the connection lives on. */
export const drainedBytes = 65_536
// A client that is still sending gets this long to see the reply. More than it needs, and less than a flood would like.
const lingerMs = 2_000

/**
 * Keeps bodies that no handler wants from being asked for and read.
 * - `100 Continue` goes out when somebody begins to read the body, not before: a refusal comes instead of it.
 * - A reply that leaves more than a little of a body unread ends the connection. It is closed for writing, and for
 *   reading only after the client has closed or some time has passed, so that no reset overtakes the reply
 *   (RFC 9112, 9.6); meanwhile hardly anything is read.
 * - A request that says neither length nor encoding has no body (RFC 9112, 6.3), whatever type it names.
 */
export function leaveUnreadBodies(server: Server | HttpsServer): void {
  server.prependListener('request', onRequest)
  // Whoever listens here has to hand the request on, to all who listen for requests.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    request.on('newListener', (event) => {
      const isReader = event === 'data' || event === 'readable'
      if (isReader && !response.headersSent && !response.writableEnded) response.writeContinue()
    })
    server.emit('request', request, response)
  })
  // An expectation nobody knows may be passed over (RFC 9110, 10.1.1); Node would refuse it with nothing in its reply.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

function onRequest(request: IncomingMessage, response: ServerResponse): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding, expect } = request.headers
  if (encoding === undefined && Number(length) === 0) {
    // The type of nothing: whoever parses that would wait for an end that never comes (`optimizeEmptyRequests`).
    if (request.readableEnded) delete request.headers['content-type']
    return
  }
  if (encoding !== undefined || expect !== undefined || Number(length) > drainedBytes) {
    const { writeHead } = response
    // Not sooner: a header that was set and taken away again would keep Node from saying how long it waits for the next
    // request, and one reply must look like another.
    response.writeHead = (...head: [status: number]) => {
      response.writeHead = writeHead
      if (!request.complete) response.setHeader('connection', 'close')
      return response.writeHead(...head)
    }
  }
  // Before Node's own listener, which would drain the body and close at once.
  response.prependOnceListener('finish', () => {
    if (!request.complete) linger(request, response)
  })
}

function linger(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > drainedBytes) request.pause()
  })
  // Node drains only what nobody has begun to read.
  request.read(0)
  const { destroySoon } = socket
  const restore = () => {
    socket.destroySoon = destroySoon
  }
  // Node calls this where the reply says that the connection ends, and before the reply closes.
  socket.destroySoon = () => {
    restore()
    socket.end()
    request.once('end', () => socket.destroySoon())
    const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
    socket.once('close', () => clearTimeout(timer))
  }
  response.once('close', restore)
}
