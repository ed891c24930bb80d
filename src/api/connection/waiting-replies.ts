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
  // Node drains only bodies that no reader has started to read.
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

/** Bytes of replies that may wait for one caller to read them, over all its connections. */
export const mostOfCaller = 16_777_216
/** The same for all callers together. */
const mostOfAll = 67_108_864
/** Replies in which fewer bytes wait are not counted: a connection is owed few, and they are most of all. */
const uncountedBytes = 4_096
/** Bytes of one piece of a stream, whose writer goes on when the pieces before are sent. */
export const mostOfStream = 262_144

/** Each part of a server that follows a reply has a listener for its end: 11 for an upload that is refused, one more than Node warns of. */
const mostListeners = 20

interface WaitingRepliesOptions {
  readonly ofCaller?: number
  readonly ofAll?: number
  /** Called for each connection that was closed. */
  readonly onClosed?: (callerName: string) => void
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

/** The bytes of replies that wait for their clients, on all servers of this process. */
export interface WaitingReplies {
  /**
   * Called when bytes of a reply have been added. Over the limit of its caller it closes the connection of the reply whose client has read nothing
   * for longest; the only waiting reply of a caller stays, whatever its size. Over the limit of all callers it closes the connection whose
   * reply has the most bytes times the time in which its client has read nothing, as long as more than one reply waits.
   */
  grown(reply: CountedResponse): void
  /** Called when the client has read a part of it. */
  progressed(reply: CountedResponse): void
  /** Called when it is sent, or lost. */
  forget(reply: CountedResponse): void
  /** Bytes that wait now. */
  bytes(): number
}

interface Wait {
  bytes: number
  /** Last read by the client, or start of the wait. Monotonic milliseconds. */
  since: number
}

interface OfCaller {
  bytes: number
  /** The reply whose client has read nothing for longest is the first: maps keep the order of insertion. */
  readonly replies: Map<CountedResponse, Wait>
}

export function createWaitingReplies({
  ofCaller = mostOfCaller,
  ofAll = mostOfAll,
  onClosed = () => undefined,
  now = () => performance.now(),
}: WaitingRepliesOptions = {}): WaitingReplies {
  const callers = new Map<string, OfCaller>()
  /** The caller may be another one for a later reply, but not for one that is counted. */
  const callerOf = new Map<CountedResponse, string>()
  let all = 0

  function count(reply: CountedResponse, bytes: number): OfCaller {
    const name = callerOf.get(reply) ?? reply.callerName
    const known = callers.get(name) ?? { bytes: 0, replies: new Map<CountedResponse, Wait>() }
    callers.set(name, known)
    callerOf.set(reply, name)
    const wait = known.replies.get(reply) ?? { bytes: 0, since: now() }
    known.replies.set(reply, wait)
    const more = bytes - wait.bytes
    wait.bytes = bytes
    known.bytes += more
    all += more
    return known
  }

  function forget(reply: CountedResponse): void {
    const name = callerOf.get(reply)
    if (name === undefined) return
    const { bytes, replies } = count(reply, 0)
    callerOf.delete(reply)
    replies.delete(reply)
    if (bytes === 0) callers.delete(name)
  }

  function close(reply: CountedResponse): void {
    const name = callerOf.get(reply) ?? reply.callerName
    const { socket } = reply.req
    // Its other replies are lost with it. Those that wait behind a proxy may be of other callers.
    for (const each of [...callerOf.keys()]) if (each.req.socket === socket) forget(each)
    socket.destroy()
    onClosed(name)
  }

  /** @returns whether there was one to close */
  function closeSlowest({ replies }: OfCaller): boolean {
    const [slowest] = replies.size > 1 ? replies.keys() : []
    if (slowest) close(slowest)
    return slowest !== undefined
  }

  /** @returns whether there was one to close */
  function closeHeaviest(): boolean {
    const at = now()
    let heaviest: CountedResponse | undefined
    let most = 0
    for (const { replies } of callers.values())
      for (const [reply, { bytes, since }] of replies) {
        // Without time, bytes decide.
        const weight = bytes * (at - since + 1)
        if (weight > most) [heaviest, most] = [reply, weight]
      }
    if (!heaviest || callerOf.size === 1) return false
    close(heaviest)
    return true
  }

  return {
    grown(reply) {
      const bytes = reply.writableLength
      if (reply.destroyed || (bytes < uncountedBytes && !callerOf.has(reply))) return
      const caller = count(reply, bytes)
      while (caller.bytes > ofCaller && closeSlowest(caller));
      while (all > ofAll && closeHeaviest());
    },
    progressed(reply) {
      const name = callerOf.get(reply)
      const replies = name === undefined ? undefined : callers.get(name)?.replies
      const wait = replies?.get(reply)
      if (!replies || !wait) return
      wait.since = now()
      replies.delete(reply)
      replies.set(reply, wait)
    },
    forget,
    bytes: () => all,
  }
}

/**
 * The reply of every server, which counts its waiting bytes. Of one that is written in pieces, as fast as its client reads, one piece waits and is
 * not counted: many slow clients are honest pulls, and their pieces are bounded by their number. So a reply counts when it is given whole, is
 * written ahead of its client, or has to wait for the replies before it.
 */
export class CountedResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends LingeringResponse<Request> {
  /** For whom it counts: a user, a host, or the client of an address. */
  callerName = ''
  private waiting: WaitingReplies | undefined
  private isStarted = false
  private isCounted = false

  /** Called for each request before its handler. */
  countIn(waiting: WaitingReplies, callerName: string): void {
    this.waiting = waiting
    this.callerName = callerName
    this.setMaxListeners(mostListeners)
    this.once('close', () => waiting.forget(this))
  }

  override write(...given: unknown[]): boolean {
    this.isCounted ||= !this.isPieceOfStream(given[0])
    this.isStarted = true
    const hasRoom = super.write(...(given as [unknown]))
    if (this.isCounted) this.waiting?.grown(this)
    return hasRoom
  }

  override end(...given: unknown[]): this {
    const [chunk] = given
    if (isBytes(chunk)) this.isCounted ||= !this.isStarted || !this.isPieceOfStream(chunk)
    super.end(...given)
    if (this.isCounted) this.waiting?.grown(this)
    return this
  }

  private isPieceOfStream(chunk: unknown): boolean {
    const hasRoom = this.socket !== null && !this.writableNeedDrain
    return hasRoom && isBytes(chunk) && chunk.length <= mostOfStream
  }
}

const isBytes = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || chunk instanceof Uint8Array

/** Counts a reply for this caller from now on. One by `inject` has no connection and does not count. */
export function nameCaller(reply: ServerResponse, name: string): void {
  if (reply instanceof CountedResponse) reply.callerName = name
}
