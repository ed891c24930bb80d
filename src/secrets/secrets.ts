import { hkdfSync, randomBytes } from 'node:crypto'

/** Keys that are made from the one secret of the state folder. */
export interface Secrets {
  /**
   * The key for one purpose, 32 bytes (RFC 5869): the same at each start, and no two purposes share one.
   * @param purpose a name that stays
   */
  derive(purpose: string): Buffer
}

/** A new secret: 256 random bits. */
export const createSecret = (): Buffer => randomBytes(32)

/** The keys of a secret. */
export const createSecrets = (secret: Buffer): Secrets => ({
  derive: (purpose) => Buffer.from(hkdfSync('sha256', secret, '', `edgehostd ${purpose}`, 32)),
})
