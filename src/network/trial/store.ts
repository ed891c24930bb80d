import type { Backend } from '../change-set.ts'
import type { Database } from '../../store/database.ts'
import type { NetworkChange } from '../schemas.ts'

/** What of the outside worked at a time: whether name servers answered, and whether the platform was connected. */
export interface Worked {
  readonly names: boolean
  readonly platform: boolean
}

/** A change as it is stored. Times are milliseconds since 1970. */
export interface StoredChange {
  readonly uid: string
  /** Grows with each change: the clock, from which uids are made, may be set back. Absent in those of before it was kept. */
  readonly place?: number
  readonly createdAt: number
  readonly deadlineAt: number
  readonly windowSeconds: number
  readonly requestedBy: string
  readonly summary: string
  readonly backend: Backend
  readonly links: readonly string[]
  readonly needsNewWay: boolean
  /** Whether the platform has to be heard before a request may confirm it: gateway or name servers changed, and it answered before. */
  readonly needsPlatform?: boolean
  /** `platform`: the next heartbeat after the apply confirms it. */
  readonly confirmBy?: 'platform'
  /** What worked before it. */
  readonly worked?: Worked
  readonly state: NetworkChange['state']
  readonly reason: NetworkChange['reason']
  readonly message: string
  readonly lost: readonly string[]
  readonly appliedAt: number | undefined
  readonly endedAt: number | undefined
}

/** What changes of a change. */
export type Progress = Partial<
  Pick<StoredChange, 'state' | 'reason' | 'message' | 'lost' | 'appliedAt' | 'endedAt'>
>

/** The changes of the network of this host, the newest first; of old ones the last hundred are kept. */
export interface ChangeStore {
  add(change: StoredChange): void
  update(uid: string, progress: Progress): StoredChange
  remove(uid: string): void
  list(): readonly StoredChange[]
}

const mostKept = 100

interface Row {
  change: string
}

export function openChangeStore(database: Database): ChangeStore {
  const { sql } = database
  const put = sql.prepare('INSERT OR REPLACE INTO network_change (uid, change) VALUES (?, ?)')
  const remove = sql.prepare('DELETE FROM network_change WHERE uid = ?')
  const rows = sql.prepare('SELECT change FROM network_change ORDER BY uid DESC').all() as unknown as Row[]
  let all: readonly StoredChange[] = rows
    .map(({ change }) => JSON.parse(change) as StoredChange)
    .toSorted((one, other) => (other.place ?? 0) - (one.place ?? 0))

  return {
    add(change) {
      const next = { ...change, place: (all[0]?.place ?? 0) + 1 }
      database.transaction(() => {
        put.run(next.uid, JSON.stringify(next))
        for (const { uid } of all.slice(mostKept - 1)) remove.run(uid)
      })
      all = [next, ...all].slice(0, mostKept)
    },
    update(uid, progress) {
      const present = all.find((each) => each.uid === uid)
      if (!present) throw new Error(`no change ${uid} is stored`)
      const next = { ...present, ...progress }
      put.run(uid, JSON.stringify(next))
      all = all.map((each) => (each.uid === uid ? next : each))
      return next
    },
    remove(uid) {
      remove.run(uid)
      all = all.filter((each) => each.uid !== uid)
    },
    list: () => all,
  }
}

/** Whether nothing decides about a change any more. */
export const isEnded = ({ state }: Pick<StoredChange, 'state'>): boolean =>
  state === 'confirmed' || state === 'reverted' || state === 'revertFailed'
