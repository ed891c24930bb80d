/** Collects bytes that arrive in pieces in one buffer. */
export interface GrowingBuffer {
  /**
   * Appends a copy of a piece.
   * @returns false when the limit would be exceeded; nothing is copied then
   */
  add(piece: Uint8Array): boolean
  /** All bytes so far; valid until the next `add`. */
  bytes(): Buffer
  /** Empties the buffer; its memory is kept and reused. */
  clear(): void
}

const firstBytes = 64

/**
 * Collects data whose size the sender decides. A list of pieces would hold an object of 100 bytes and more for each
 * byte sent alone, and a piece that is part of a larger buffer keeps that whole buffer alive. This buffer doubles as
 * data arrives and never trusts an announced size.
 * @param limitBytes maximum size
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
        // Not from Node's pool: one small body would keep a whole pool buffer alive.
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
