import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../system/clock.ts'

/**
 * Nonces that need no memory: the time, random bytes, and a code over both and the host they are for. A nonce is valid for a minute. It may be
 * used more than once in that time; what keeps a login from being used again is the generation that it contains.
 */
export interface Nonces {
  make(hostUid: string): string
  isValid(nonce: string, hostUid: string): boolean
}

const lifeMs = 60_000
const timeBytes = 6
const randomSize = 16
const codeSize = 32
const size = timeBytes + randomSize + codeSize

export function createNonces({ key, clock }: { readonly key: Buffer; readonly clock: Clock }): Nonces {
  const codeOf = (content: Buffer, hostUid: string) =>
    createHmac('sha256', key).update(content).update(hostUid).digest()
  return {
    make(hostUid) {
      const time = Buffer.alloc(timeBytes)
      time.writeUIntBE(Math.max(0, clock.now()), 0, timeBytes)
      const content = Buffer.concat([time, randomBytes(randomSize)])
      return Buffer.concat([content, codeOf(content, hostUid)]).toString('base64url')
    },
    isValid(nonce, hostUid) {
      const bytes = Buffer.from(nonce, 'base64url')
      // Base64 has several spellings of some bytes; only ours is accepted.
      if (bytes.length !== size || bytes.toString('base64url') !== nonce) return false
      const content = bytes.subarray(0, timeBytes + randomSize)
      if (!timingSafeEqual(bytes.subarray(timeBytes + randomSize), codeOf(content, hostUid))) return false
      const age = clock.now() - content.readUIntBE(0, timeBytes)
      return age >= 0 && age < lifeMs
    },
  }
}
