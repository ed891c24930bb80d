import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../system/clock.ts'

/**
 * Nonces that need no memory until they are used: the time, random bytes, and a code over both and the host they are for. A nonce is valid for a
 * minute, and once: a proof that is sent again would get a token for another one who has read it, or make the host look like two.
 */
export interface Nonces {
  make(hostUid: string): string
  /** Whether a nonce is valid for a host; from then on it is not. To be called for proofs that the host has signed only, since each is remembered. */
  take(nonce: string, hostUid: string): boolean
}

const lifeMs = 60_000
const timeBytes = 6
const randomSize = 16
const codeSize = 32
const size = timeBytes + randomSize + codeSize

export function createNonces({ clock }: { readonly clock: Clock }): Nonces {
  // A key of this process: what was used before a restart is forgotten, and must not be valid after it.
  const key = randomBytes(32)
  /** When each nonce was taken, by the monotonic clock; the oldest first. */
  const taken = new Map<string, number>()

  function forgetOld(): void {
    for (const [nonce, at] of taken) {
      if (clock.monotonic() - at < lifeMs) return
      taken.delete(nonce)
    }
  }

  const codeOf = (content: Buffer, hostUid: string) =>
    createHmac('sha256', key).update(content).update(hostUid).digest()
  return {
    make(hostUid) {
      const time = Buffer.alloc(timeBytes)
      time.writeUIntBE(Math.max(0, clock.now()), 0, timeBytes)
      const content = Buffer.concat([time, randomBytes(randomSize)])
      return Buffer.concat([content, codeOf(content, hostUid)]).toString('base64url')
    },
    take(nonce, hostUid) {
      forgetOld()
      if (taken.has(nonce)) return false
      const bytes = Buffer.from(nonce, 'base64url')
      // Base64 has several spellings of some bytes; only ours is accepted.
      if (bytes.length !== size || bytes.toString('base64url') !== nonce) return false
      const content = bytes.subarray(0, timeBytes + randomSize)
      if (!timingSafeEqual(bytes.subarray(timeBytes + randomSize), codeOf(content, hostUid))) return false
      const age = clock.now() - content.readUIntBE(0, timeBytes)
      if (age < 0 || age >= lifeMs) return false
      taken.set(nonce, clock.monotonic())
      return true
    },
  }
}
