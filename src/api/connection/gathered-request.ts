import { IncomingMessage } from 'node:http'
import { createGrowingBuffer, type GrowingBuffer } from '../../base/growing-buffer.ts'

/**
 * A request that keeps its unread body in one buffer. Node keeps up to 64 KiB of a body that is not read yet, as the chunks of
 * the wire: in chunks of one byte these take 25 MB on each connection, also of clients that are refused. The class is passed to
 * the server as its option `IncomingMessage`.
 */
export class GatheredRequest extends IncomingMessage {
  private waiting: GrowingBuffer | undefined

  /** Bytes that have arrived and are not read yet. */
  get waitingBytes(): number {
    return this.readableLength + (this.waiting?.bytes().length ?? 0)
  }

  /** Called by Node for every chunk of the body, and with null at its end. */
  override push(chunk: Buffer | null): boolean {
    if (chunk === null || this.isBeingRead()) {
      this.release()
      return super.push(chunk)
    }
    // When this returns false, Node stops reading the connection, but still pushes the chunks that it has read before.
    this.waiting ??= createGrowingBuffer(Infinity)
    this.waiting.add(chunk)
    return this.waitingBytes < this.readableHighWaterMark
  }

  override read(size?: number): unknown {
    // read(0) is no reader: it only makes the stream fetch more data, and the stream calls it itself.
    if (size !== 0 || this.isBeingRead()) this.release()
    return super.read(size)
  }

  private isBeingRead(): boolean {
    return this.readableFlowing === true || this.listenerCount('readable') > 0
  }

  private release(): void {
    if (this.waiting === undefined) return
    const bytes = this.waiting.bytes()
    this.waiting = undefined
    super.push(bytes)
  }
}
