import { hash } from 'node:crypto'

/** Length of a checksum in bytes. */
export const checksumBytes = 20

/** Detects damage, not an attack. SHA-1, since the daemon loads node:crypto anyway and processors have it built in. */
export const checksumOf = (data: Uint8Array): Buffer => hash('sha1', data, 'buffer')
