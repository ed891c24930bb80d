import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** Encrypts the secrets in a database, with a key that only this state folder has. */
export interface Seal {
  /** AES-256-GCM: nonce, tag, encrypted text. */
  seal(text: string): Buffer
  /** @returns undefined for a text that was altered, or sealed with another key */
  open(sealed: Uint8Array): string | undefined
}

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** @param key 32 bytes, of `Secrets.derive` with a purpose of its own */
export const createSeal = (key: Buffer): Seal => ({
  seal(text) {
    const nonce = randomBytes(nonceBytes)
    const sealing = createCipheriv(cipher, key, nonce)
    const body = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
    return Buffer.concat([nonce, sealing.getAuthTag(), body])
  },
  open(sealed) {
    const bytes = Buffer.from(sealed)
    try {
      const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
      const body = bytes.subarray(nonceBytes + tagBytes)
      return Buffer.concat([opening.update(body), opening.final()]).toString('utf8')
    } catch {
      return undefined
    }
  },
})
