/** Bytes that one side writes and a program reads, in large pieces. */
export interface Batches {
  /** Each piece is used until the next one is asked for. */
  readonly pieces: AsyncIterable<string | Uint8Array>
  /** Copies the bytes; resolves when there is room for more. */
  write(chunk: Uint8Array): Promise<void>
  /** Writes the rest; no more follows. */
  end(): Promise<void>
  /** No piece is asked for any more: what is written from now on is thrown away. */
  discard(): void
}

// Larger than the buffer of a Unix socket. There are two: one fills while the other one is being sent.
const batchBytes = 524_288

/** @param first a line that goes before all bytes */
export function createBatches(first: string): Batches {
  let filling = Buffer.allocUnsafeSlow(batchBytes)
  let resting = Buffer.allocUnsafeSlow(batchBytes)
  let filled = 0
  let isEnded = false
  let isDiscarded = false
  /** The batch that waits to be sent or is being sent. */
  let sent: { readonly bytes: Uint8Array; readonly isSent: PromiseWithResolvers<unknown> } | undefined
  let arrived = Promise.withResolvers()

  async function* pieces(): AsyncGenerator<string | Uint8Array> {
    yield first
    for (;;) {
      if (sent !== undefined) {
        yield sent.bytes
        const { isSent } = sent
        sent = undefined
        isSent.resolve(undefined)
      } else if (isEnded) return
      else {
        await arrived.promise
        arrived = Promise.withResolvers()
      }
    }
  }

  // Waits for the previous batch, not for this one.
  async function passOn(): Promise<void> {
    await sent?.isSent.promise
    if (!isDiscarded) {
      sent = { bytes: filling.subarray(0, filled), isSent: Promise.withResolvers() }
      arrived.resolve(undefined)
    }
    ;[filling, resting, filled] = [resting, filling, 0]
  }

  return {
    pieces: pieces(),
    async write(chunk) {
      for (let at = 0; at < chunk.length && !isDiscarded;) {
        const part = chunk.subarray(at, at + batchBytes - filled)
        filling.set(part, filled)
        filled += part.length
        at += part.length
        if (filled === batchBytes) await passOn()
      }
    },
    async end() {
      if (filled > 0) await passOn()
      isEnded = true
      arrived.resolve(undefined)
    },
    discard() {
      isDiscarded = true
      isEnded = true
      arrived.resolve(undefined)
      sent?.isSent.resolve(undefined)
      sent = undefined
    },
  }
}
