import { IncomingMessage } from 'node:http'
import { createGrowingBuffer, type GrowingBuffer } from '../../base/growing-buffer.ts'

/**
 * A request whose body waits in one piece for the handler that reads it. Node keeps up to 64 KiB of a body that is not
 * read yet, and as the chunks of the wire: where each holds one byte, they take 25 MB on each connection, also of
 * clients that are refused. The class goes to the server as its option `IncomingMessage`.
 */
export class GatheredRequest extends IncomingMessage {
  private waiting: GrowingBuffer | undefined

  /** Bytes that have arrived and wait to be read. */
  get waitingBytes(): number {
    return this.readableLength + (this.waiting?.bytes().length ?? 0)
  }

  /** Node hands every chunk of the body over by this, and null at its end. */
  override push(chunk: Buffer | null): boolean {
    if (chunk === null || this.isBeingRead()) {
      this.release()
      return super.push(chunk)
    }
    // Node stops reading the connection where this says so, and what it has read until then is still handed over.
    this.waiting ??= createGrowingBuffer(Infinity)
    this.waiting.add(chunk)
    return this.waitingBytes < this.readableHighWaterMark
  }

  override read(size?: number): unknown {
    // A reader of the stream asks for no bytes where it only wants more to come: the stream does so by itself too.
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
