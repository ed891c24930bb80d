import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { Secrets } from '../secrets/secrets.ts'

/** Encrypts what a database may hold of a cluster's secrets, with keys that only this host has. */
export interface Sealed {
  /** AES-256-GCM: nonce, tag, encrypted text. */
  seal(text: string): Buffer
  /** @returns undefined for a text that was altered, or sealed before the secret of the state folder was replaced */
  open(sealed: Uint8Array): string | undefined
  /** A mark of a text, equal for equal texts, from which the text cannot be guessed without the key. */
  mark(text: string): Buffer
}

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export function createSealed(secrets: Secrets): Sealed {
  const key = secrets.derive('sensitive values of the cluster')
  const markKey = secrets.derive('marks of cluster configurations')
  return {
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
    mark: (text) => createHmac('sha256', markKey).update(text).digest(),
  }
}
