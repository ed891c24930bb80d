import type { Finding, ReferenceCheck } from '../room.ts'
import { parseSigningKey, SigningKeyUnusable } from '../upload/signing.ts'

const path = 'content.signing.publicKey.base64EncodedValue'

/** Checks the public key for uploads, if one is configured. */
export async function checkSigningKey({ value }: ReferenceCheck): Promise<Finding[]> {
  const base64EncodedValue = value(path)
  if (typeof base64EncodedValue !== 'string' || base64EncodedValue === '') return []
  try {
    parseSigningKey({ base64EncodedValue, description: '' })
    return []
  } catch (error) {
    if (!(error instanceof SigningKeyUnusable)) throw error
    return [{ path, message: error.message }]
  }
}
