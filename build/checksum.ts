import { hash } from 'node:crypto'

/** Bytes of a checksum. */
export const checksumBytes = 20

/** Finds damage, not malice. SHA-1, since the daemon loads node:crypto anyway and processors have it built in. */
export const checksumOf = (data: Uint8Array): Buffer => hash('sha1', data, 'buffer')
