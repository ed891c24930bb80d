import { createHmac } from 'node:crypto'
import { createSeal, type Seal } from '../secrets/seal.ts'
import type { Secrets } from '../secrets/secrets.ts'

/** Encrypts what a database may hold of a cluster's secrets, with keys that only this host has. */
export interface Sealed extends Seal {
  /** A mark of a text, equal for equal texts, from which the text cannot be guessed without the key. */
  mark(text: string): Buffer
}

export function createSealed(secrets: Secrets): Sealed {
  const markKey = secrets.derive('marks of cluster configurations')
  return {
    ...createSeal(secrets.derive('sensitive values of the cluster')),
    mark: (text) => createHmac('sha256', markKey).update(text).digest(),
  }
}
