import type { Database } from '../store/database.ts'
import type { StopAction } from './schemas.ts'

/** A reboot or a shutdown that a user has asked for. Times are milliseconds since 1970. */
export interface StopRecord {
  readonly uid: string
  readonly action: StopAction
  readonly state: 'planned' | 'going' | 'done' | 'failed'
  readonly message: string
  readonly by: string
  readonly isForced: boolean
  readonly requestedAt: number
  /** The time it is planned for; null where it was to go at once. */
  readonly plannedAt: number | null
  /** When the host was told to go; null before. */
  readonly wentAt: number | null
  /** Why it was not done; empty otherwise. */
  readonly reason: string
}

/** A boot of the host, from the first start of the daemon in it. */
export interface BootRecord {
  readonly bootId: string
  readonly beganAt: number
  /** The last orderly stop of the daemon in it; null while the daemon runs. */
  readonly endedAt: number | null
  /** How the host came back; null for the first boot that the daemon sees. */
  readonly back: Back | null
}

/** How the host came back. */
export interface Back {
  readonly message: string
  readonly isOrderly: boolean
  /** Undefined where it is not known. */
  readonly afterSeconds?: number
}

/** Stops, and the boot that they begin. */
export interface StopStore {
  /** The stop that is planned or under way. */
  open(): StopRecord | undefined
  /** The last one that is neither. */
  last(): StopRecord | undefined
  add(stop: StopRecord): void
  change(uid: string, to: Partial<Pick<StopRecord, 'state' | 'wentAt' | 'reason'>>): void
  remove(uid: string): void
  boot(): BootRecord | undefined
  beginBoot(boot: Pick<BootRecord, 'bootId' | 'beganAt' | 'back'>): void
  /** @param at null where the daemon runs again in the same boot */
  endBoot(at: number | null): void
}

interface Row extends Omit<StopRecord, 'isForced'> {
  readonly isForced: number
}

interface BootRow extends Omit<BootRecord, 'back'> {
  readonly back: string | null
}

const selected = `SELECT uid, action, state, message, by, is_forced AS isForced, requested_at AS requestedAt, planned_at AS plannedAt,
  went_at AS wentAt, reason FROM host_stop`

export function createStopStore({ sql, transaction }: Database): StopStore {
  const firstOf = (condition: string) => {
    // Once: the stop that is open is asked for each second.
    const statement = sql.prepare(`${selected} WHERE ${condition} LIMIT 1`)
    return (): StopRecord | undefined => {
      const row = statement.get() as unknown as Row | undefined
      return row && { ...row, isForced: row.isForced === 1 }
    }
  }
  return {
    open: firstOf("state IN ('going', 'planned') ORDER BY state = 'planned', requested_at DESC"),
    last: firstOf("state IN ('done', 'failed') ORDER BY requested_at DESC"),
    add: ({ uid, action, state, message, by, isForced, requestedAt, plannedAt, wentAt, reason }) =>
      transaction(() => {
        // The trail has the earlier ones.
        sql.exec("DELETE FROM host_stop WHERE state IN ('done', 'failed')")
        sql
          .prepare(
            `INSERT INTO host_stop (uid, action, state, message, by, is_forced, requested_at, planned_at, went_at, reason)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          )
          .run(uid, action, state, message, by, Number(isForced), requestedAt, plannedAt, wentAt, reason)
      }),
    change(uid, { state, wentAt, reason }) {
      sql
        .prepare(
          'UPDATE host_stop SET state = coalesce(?, state), went_at = coalesce(?, went_at), reason = coalesce(?, reason) WHERE uid = ?',
        )
        .run(state ?? null, wentAt ?? null, reason ?? null, uid)
    },
    remove: (uid) => void sql.prepare('DELETE FROM host_stop WHERE uid = ?').run(uid),
    boot() {
      const row = sql
        .prepare('SELECT boot_id AS bootId, began_at AS beganAt, ended_at AS endedAt, back FROM host_boot')
        .get() as unknown as BootRow | undefined
      return row && { ...row, back: JSON.parse(row.back ?? 'null') as Back | null }
    },
    beginBoot: ({ bootId, beganAt, back }) =>
      void sql
        .prepare(
          'INSERT OR REPLACE INTO host_boot (one, boot_id, began_at, ended_at, back) VALUES (1, ?, ?, NULL, ?)',
        )
        .run(bootId, beganAt, back && JSON.stringify(back)),
    endBoot: (at) => void sql.prepare('UPDATE host_boot SET ended_at = ?').run(at),
  }
}
