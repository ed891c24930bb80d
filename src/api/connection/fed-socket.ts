import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Fed, Feeder } from './feeder.ts'
import { CountedResponse, createWaitingReplies, type WaitingReplies } from './waiting-replies.ts'

/** Bytes that are parsed at once where they may be requests, of a client that sends few at once. */
export const pieceBytes = 1_024
/** The same of all others, and at first: at most 15 of the smallest requests. 57 refusals are 60 ms of a processor on the platform. */
export const densePieceBytes = 256
/** A client whose piece had no more requests sends few at once. */
const fewRequests = 2
/** The same within a body that is being read. No request begins there, and TLS gives no more at once. */
export const bodyPieceBytes = 16_384
/** The same where nothing but the parser knows the end of the body; requests may follow it in the same piece. */
export const chunkedPieceBytes = 4_096
/** No more requests of a connection are parsed while it is owed so many replies. */
export const mostOwed = 16
/** The same while so many bytes of its replies wait for the client to read them. */
export const mostWaiting = 65_536
/** After so many refusals in a row a connection ends with its next reply. */
export const mostRefusals = 100
/** So long it then stays open: a flood that comes back at once costs more by its handshakes than by its requests. Milliseconds. */
const refusedStayMs = 2_000
/** Bytes that are encrypted at once: a copy of a whole reply would wait beside it for a client that does not read. */
const writtenBytes = 65_536

interface Body {
  readonly request: IncomingMessage
  readonly isChunked: boolean
  /** Bytes that may still be of this body. */
  left: number
}

/** Header fields that were late while bytes of their connection waited here. */
interface Late {
  readonly milliseconds: number
  readonly expire: () => void
  timer?: NodeJS.Timeout
}

type Written = (error?: Error | null) => void

/**
 * The connection that an HTTP parser sees in the place of its socket: the parser gets the bytes in pieces, when the feeder says so and not while
 * the connection is owed too many replies. The rest stays in the socket and with the client.
 *
 * It has the used parts of a `net.Socket`: addresses, times, `destroySoon` and the counts of bytes.
 */
export class FedSocket extends Duplex implements Fed {
  /** The connection itself. */
  readonly outer: Socket
  readonly turnName: string
  private readonly feeder: Feeder
  private held: Buffer | undefined
  private isOuterEnded = false
  private isEndTaken = false
  private isLast = false
  private body: Body | undefined
  private readonly waiting: WaitingReplies
  /** Replies that are not sent yet, in their order. */
  private readonly owed = new Set<ServerResponse>()
  private refusals = 0
  /** Whether requests had to wait for replies since none was owed. */
  private hasWaited = false
  private late: Late | undefined
  /** Requests of the piece that is parsed. */
  private started = 0
  private isDense = true

  constructor(outer: Socket, feeder: Feeder, turnName: string, waiting = createWaitingReplies()) {
    // Of a body whose reader has not started, one piece waits: `IncomingMessage` takes its limit from here.
    super({ allowHalfOpen: true, decodeStrings: false, readableHighWaterMark: 1 })
    this.outer = outer
    this.feeder = feeder
    this.turnName = turnName
    this.waiting = waiting
    outer.on('data', (chunk: Buffer) => {
      const held = this.held ? Buffer.concat([this.held, chunk]) : chunk
      this.held = held
      feeder.arrived(this)
      // A piece that was parsed at once has noted it.
      if (this.held === held) this.noteWait()
      // Not before: pausing and resuming a socket costs more than most requests.
      if (this.heldBytes > 0) outer.pause()
    })
    outer.on('end', () => {
      this.isOuterEnded = true
      feeder.arrived(this)
    })
    outer.on('timeout', () => this.emit('timeout'))
    outer.on('error', (error) => this.destroy(error))
    outer.on('close', () => this.destroy())
  }

  /** Replies that are not sent yet. */
  get owedReplies(): number {
    return this.owed.size
  }

  /** Bytes that have arrived and are not parsed yet, without those in the socket. */
  get heldBytes(): number {
    return this.held?.length ?? 0
  }

  /** Called for each request before its handler. */
  owe(request: IncomingMessage, response: ServerResponse): void {
    this.owed.add(response)
    this.started += 1
    this.forgetLate()
    if (response instanceof CountedResponse) response.countIn(this.waiting, this.turnName)
    this.body = bodyOf(request)
    if (this.refusals >= mostRefusals) {
      this.isLast = true
      response.setHeader('connection', 'close')
    }
    response.once('close', () => {
      this.owed.delete(response)
      if (this.owed.size === 0 && this.held === undefined && !this.isOuterEnded) this.hasWaited = false
      this.refusals = response.statusCode >= 400 ? this.refusals + 1 : 0
      if (this.held || this.isOuterEnded) this.feeder.offer(this)
    })
  }

  isReady(): boolean {
    if (this.destroyed || this.isEndTaken) return false
    // Node ends the connection with its requests: the replies that are owed would be lost. Where none of its requests had to wait the client is
    // most likely gone, and its requests end with it.
    if (this.held === undefined) return this.isOuterEnded && (this.owed.size <= 1 || !this.hasWaited)
    return this.hasRoom() && !this.isLast && !this.isPaused() && this.readableLength === 0
  }

  /** Whether more requests may be parsed before replies are sent. */
  private hasRoom(): boolean {
    if (this.owed.size >= mostOwed) return false
    let bytes = 0
    for (const { writableLength } of this.owed) bytes += writableLength
    return bytes < mostWaiting
  }

  /** Called when bytes have arrived, or have been parsed. */
  private noteWait(): void {
    if (this.held && !this.hasRoom()) this.hasWaited = true
  }

  takePiece(): void {
    const { held } = this
    if (held === undefined) {
      this.isEndTaken = true
      this.push(null)
      return
    }
    const length = Math.min(held.length, this.nextLength())
    this.started = 0
    this.held = length < held.length ? held.subarray(length) : undefined
    this.push(length < held.length ? held.subarray(0, length) : held)
    // Of a piece within header fields or a body, nothing is known.
    if (this.started > 0) this.isDense = this.started > fewRequests
    this.noteWait()
    if (this.held !== undefined) return
    this.startLate()
    if (this.outer.isPaused()) this.outer.resume()
  }

  /**
   * Called when the time for header fields has passed. Where bytes wait for their turn it is not the client that is late: the time begins again
   * when they are parsed.
   * @param expire called when it has passed then
   * @returns whether bytes wait
   */
  extendHeaders(milliseconds: number, expire: () => void): boolean {
    if (this.held === undefined) return false
    this.forgetLate()
    this.late = { milliseconds, expire }
    return true
  }

  private startLate(): void {
    const { late } = this
    if (!late) return
    clearTimeout(late.timer)
    late.timer = setTimeout(() => {
      if (this.held === undefined && !this.destroyed) late.expire()
    }, late.milliseconds).unref()
  }

  private forgetLate(): void {
    clearTimeout(this.late?.timer)
    this.late = undefined
  }

  private nextLength(): number {
    const { body } = this
    const length = this.isDense ? densePieceBytes : pieceBytes
    if (!body) return length
    if (body.request.complete || body.left <= 0) {
      this.body = undefined
      return length
    }
    if (!isBeingRead(body.request)) return this.countOff(body, pieceBytes)
    if (body.isChunked) return chunkedPieceBytes
    return this.countOff(body, Math.min(bodyPieceBytes, Math.max(pieceBytes, body.left)))
  }

  private countOff(body: Body, length: number): number {
    body.left -= Math.min(length, this.heldBytes)
    return length
  }

  override _read(): void {
    if (this.held) this.feeder.offer(this)
  }

  override resume(): this {
    super.resume()
    // Node resumes from within the parser, which must not be entered again.
    if (this.held) this.feeder.offer(this)
    return this
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Written): void {
    if (chunk.length <= writtenBytes) this.outer.write(chunk, encoding, done)
    else this.writePart(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk, done)
  }

  private writePart(bytes: Buffer, done: Written): void {
    if (bytes.length <= writtenBytes) {
      this.outer.write(bytes, done)
      return
    }
    this.outer.write(bytes.subarray(0, writtenBytes), (error) => {
      if (error) {
        done(error)
        return
      }
      const [current] = this.owed
      if (current instanceof CountedResponse) this.waiting.progressed(current as CountedResponse)
      this.writePart(bytes.subarray(writtenBytes), done)
    })
  }

  override _writev(chunks: { chunk: Buffer | string; encoding: BufferEncoding }[], done: Written): void {
    if (this.writableLength > writtenBytes) {
      this.writeEach(chunks, 0, done)
      return
    }
    const { outer } = this
    outer.cork()
    chunks.forEach(({ chunk, encoding }, index) => {
      if (index === chunks.length - 1) outer.write(chunk, encoding, done)
      else outer.write(chunk, encoding)
    })
    outer.uncork()
  }

  private writeEach(
    chunks: readonly { chunk: Buffer | string; encoding: BufferEncoding }[],
    index: number,
    done: Written,
  ): void {
    const next = chunks[index]
    if (!next) {
      done()
      return
    }
    this._write(next.chunk, next.encoding, (error) => {
      if (error) done(error)
      else this.writeEach(chunks, index + 1, done)
    })
  }

  override _final(done: Written): void {
    if (this.outer.destroyed) done()
    else this.outer.end(() => done())
  }

  override _destroy(error: Error | null, done: Written): void {
    this.held = undefined
    this.forgetLate()
    this.outer.destroy()
    done(error)
  }

  /** Ends the connection when all that was written is sent; one of refusals later. */
  destroySoon(): void {
    if (this.isLast) setTimeout(() => this.finish(), refusedStayMs).unref()
    else this.finish()
  }

  private finish(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  setTimeout(milliseconds: number, listener?: () => void): this {
    if (listener) this.once('timeout', listener)
    this.outer.setTimeout(milliseconds)
    return this
  }

  /** As set by `setTimeout`, milliseconds. */
  get timeout(): number | undefined {
    return this.outer.timeout
  }

  setNoDelay(isOn?: boolean): this {
    this.outer.setNoDelay(isOn)
    return this
  }

  setKeepAlive(isOn?: boolean, delayMs?: number): this {
    this.outer.setKeepAlive(isOn, delayMs)
    return this
  }

  ref(): this {
    this.outer.ref()
    return this
  }

  unref(): this {
    this.outer.unref()
    return this
  }

  address(): AddressInfo | object {
    return this.outer.address()
  }

  get encrypted(): boolean {
    return 'encrypted' in this.outer
  }

  get remoteAddress(): string | undefined {
    return this.outer.remoteAddress
  }

  get remotePort(): number | undefined {
    return this.outer.remotePort
  }

  get remoteFamily(): string | undefined {
    return this.outer.remoteFamily
  }

  get localAddress(): string | undefined {
    return this.outer.localAddress
  }

  get localPort(): number | undefined {
    return this.outer.localPort
  }

  /** Bytes that have arrived from the client. */
  get bytesRead(): number {
    return this.outer.bytesRead
  }

  get bytesWritten(): number {
    return this.outer.bytesWritten
  }
}

function bodyOf(request: IncomingMessage): Body | undefined {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  if (encoding !== undefined) return { request, isChunked: true, left: Infinity }
  return Number(length) > 0 ? { request, isChunked: false, left: Number(length) } : undefined
}

/** Whether the reader of a body has started. */
export const isBeingRead = (request: IncomingMessage): boolean =>
  request.readableFlowing === true || request.listenerCount('readable') > 0
