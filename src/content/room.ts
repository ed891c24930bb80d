import type { SystemEntry } from '../audit/own-entries.ts'
import type { Room } from '../room.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { SigningKey } from '../upload/signing.ts'
import { signingKeyRoutes } from './routes/signing-key.ts'
import { noteSigningKey } from './signing-key-store.ts'

export interface ContentOptions {
  readonly database: Database
  /** The public key that verifies uploads; undefined if they need no signature. */
  readonly signingKey: SigningKey | undefined
  /** Writes an audit record for a change that the daemon makes by itself. */
  readonly record: (entry: SystemEntry) => void
  readonly clock: Clock
}

/** Creates the room of the content of this host. */
export function createContent(options: ContentOptions): Room {
  const { signingKey: key, clock } = options
  const since = noteSigningKey(key, options)
  return {
    async routes(app) {
      await app.register(signingKeyRoutes, { signing: key && { key, since: since ?? clock.now() } })
    },
  }
}
