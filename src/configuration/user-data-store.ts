import type { ExternalRegistry } from '../content/registry/external-registry.ts'
import type { Seal } from '../secrets/seal.ts'
import type { Database } from '../store/database.ts'
import type { StagesStatus, StageStep } from './stage-steps.ts'

/** What of user data no other part of the daemon has. */
export interface KeptUserData {
  readonly uid: string
  readonly tags: Readonly<Record<string, unknown>>
  /** A registry of others; sealed, since it may have a password. */
  readonly registry: ExternalRegistry | undefined
  /** Stages that have not run yet; sealed. */
  readonly steps: readonly StageStep[] | undefined
  /** Undefined where there never were any. */
  readonly stages: StagesStatus | undefined
}

/** The one user data of this host. */
export interface UserDataStore {
  /** Undefined where none was given. */
  current(): KeptUserData | undefined
  put(next: KeptUserData): void
}

interface Row {
  readonly uid: string
  readonly tags: string
  readonly sealed: Uint8Array | null
  readonly stages: string | null
}

/** What is sealed. */
type Sealed = Partial<Pick<KeptUserData, 'registry' | 'steps'>>

export function openUserDataStore({ sql }: Pick<Database, 'sql'>, seal: Seal): UserDataStore {
  const select = sql.prepare('SELECT uid, tags, sealed, stages FROM host_user_data')
  return {
    current() {
      const row = select.get() as unknown as Row | undefined
      if (row === undefined) return undefined
      // Where the secret of the state folder was replaced, what it sealed is gone.
      const text = row.sealed === null ? undefined : seal.open(row.sealed)
      const { registry, steps } = (text === undefined ? {} : JSON.parse(text)) as Sealed
      return {
        uid: row.uid,
        tags: JSON.parse(row.tags) as Record<string, unknown>,
        registry,
        steps,
        stages: row.stages === null ? undefined : (JSON.parse(row.stages) as StagesStatus),
      }
    },
    put({ uid, tags, registry, steps, stages }) {
      sql
        .prepare(
          `INSERT INTO host_user_data (one, uid, tags, sealed, stages) VALUES (1, ?, ?, ?, ?)
          ON CONFLICT (one) DO UPDATE SET uid = excluded.uid, tags = excluded.tags, sealed = excluded.sealed, stages = excluded.stages`,
        )
        .run(
          uid,
          JSON.stringify(tags),
          // Undefined members are left out.
          seal.seal(JSON.stringify({ registry, steps })),
          stages === undefined ? null : JSON.stringify(stages),
        )
    },
  }
}
