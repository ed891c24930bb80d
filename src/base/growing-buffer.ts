/** Bytes that arrive in pieces, in one buffer. */
export interface GrowingBuffer {
  /**
   * Copies a piece to the end.
   * @returns false where there would be more bytes than the limit; then nothing is copied
   */
  add(piece: Uint8Array): boolean
  /** All of them; good until the next `add`. */
  bytes(): Buffer
  /** Begins anew; the memory is kept for what comes. */
  clear(): void
}

const firstBytes = 64

/**
 * Gathers what a sender decides the size of. A list of the pieces would hold an object of 100 bytes and more for each
 * byte that is sent alone, and a piece that is part of a larger buffer keeps all of that. The buffer doubles with what
 * has arrived, never with what was announced.
 * @param limitBytes most bytes
 */
export function createGrowingBuffer(limitBytes: number): GrowingBuffer {
  let buffer = Buffer.alloc(0)
  let used = 0
  return {
    add(piece) {
      const needed = used + piece.length
      if (needed > limitBytes) return false
      if (needed > buffer.length) {
        const room = Math.min(limitBytes, Math.max(needed, 2 * buffer.length, firstBytes))
        // Not from the pool, which one small body would keep as a whole.
        const larger = Buffer.allocUnsafeSlow(room)
        buffer.copy(larger, 0, 0, used)
        buffer = larger
      }
      buffer.set(piece, used)
      used = needed
      return true
    },
    bytes: () => buffer.subarray(0, used),
    clear() {
      used = 0
    },
  }
}
