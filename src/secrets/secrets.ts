import { program } from '../base/program.ts'
import { hkdfSync, randomBytes } from 'node:crypto'

/** Derives keys from the secret of the state folder. */
export interface Secrets {
  /**
   * The key for one purpose, 32 bytes (RFC 5869): the same at each start, and different for each purpose.
   * @param purpose a name that never changes
   */
  derive(purpose: string): Buffer
}

/** Creates a secret: 256 random bits. */
export const createSecret = (): Buffer => randomBytes(32)

/** The keys derived from a secret. */
export const createSecrets = (secret: Buffer): Secrets => ({
  derive: (purpose) => Buffer.from(hkdfSync('sha256', secret, '', `${program.daemon} ${purpose}`, 32)),
})
