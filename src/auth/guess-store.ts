import type { Database } from '../store/database.ts'

/** What is counted of one key, as it is kept. Times are milliseconds of the guard's clock. */
export interface KeptGuess {
  /** What is counted, and for whom; names that were typed stand in it as codes. */
  readonly key: string
  readonly failures: number
  /** 0 where it is not. */
  readonly blockedUntil: number
  readonly forgetAt: number
  /** Of single failures, the oldest first; empty where they are only counted. */
  readonly times: readonly number[]
}

/**
 * Failures and locks on the disk. Their clock stands still while the daemon is down and knows no date: a lock that
 * comes back has the time left that it had, whatever was done to the clock of the host.
 */
export interface GuessStore {
  /** The moment at which the clock stood the last time, and all that was counted until then, the oldest first. */
  load(): { readonly now: number; readonly kept: readonly KeptGuess[] }
  /** Survives a kill at once, a power cut with the next wait for the disk: that for the record of the refusal. */
  put(kept: readonly KeptGuess[], now: number): void
  remove(key: string): void
  /** Takes away what is to be forgotten, and notes how late it is; nothing is written where nothing is kept. */
  keep(now: number): void
}

/** @param maximumRows beyond, what is not blocked, has fewest failures and is nearest to be forgotten gives way */
export function createGuessStore(database: Database, maximumRows: number): GuessStore {
  const { sql, transactionBeforeNext } = database
  const list = sql.prepare('SELECT * FROM guess ORDER BY forget_at')
  const count = sql.prepare('SELECT count(*) AS rows FROM guess')
  const readTime = sql.prepare('SELECT at FROM guess_time')
  const writeTime = sql.prepare('UPDATE guess_time SET at = ?')
  const update = sql.prepare(
    'UPDATE guess SET failures = ?, blocked_until = ?, forget_at = ?, times = ? WHERE key = ?',
  )
  const insert = sql.prepare(
    'INSERT INTO guess (failures, blocked_until, forget_at, times, key) VALUES (?, ?, ?, ?, ?)',
  )
  const remove = sql.prepare('DELETE FROM guess WHERE key = ?')
  const forget = sql.prepare('DELETE FROM guess WHERE forget_at <= ?')
  const trim = sql.prepare(
    'DELETE FROM guess WHERE key IN (SELECT key FROM guess ORDER BY blocked_until > ?, failures, forget_at LIMIT ?)',
  )
  const countRows = () => (count.get() as { rows: number }).rows

  return {
    load() {
      const rows = list.all() as { [Name in keyof KeptRow]: KeptRow[Name] }[]
      return { now: (readTime.get() as { at: number }).at, kept: rows.map(toKept) }
    },
    put: (kept, now) =>
      transactionBeforeNext(() => {
        writeTime.run(now)
        let isNew = false
        for (const { key, failures, blockedUntil, forgetAt, times } of kept) {
          const values = [failures, blockedUntil, forgetAt, times.join(' '), key] as const
          if (update.run(...values).changes > 0) continue
          insert.run(...values)
          isNew = true
        }
        const tooMany = isNew ? countRows() - maximumRows : 0
        // Some more than needed, or each of a flood would look at all of them.
        if (tooMany > 0) trim.run(now, tooMany + Math.floor(maximumRows / 10))
      }),
    remove: (key) => transactionBeforeNext(() => void remove.run(key)),
    keep(now) {
      if (countRows() === 0) return
      transactionBeforeNext(() => {
        forget.run(now)
        writeTime.run(now)
      })
    },
  }
}

interface KeptRow {
  readonly key: string
  readonly failures: number
  readonly blocked_until: number
  readonly forget_at: number
  readonly times: string
}

const toKept = (row: KeptRow): KeptGuess => ({
  key: row.key,
  failures: row.failures,
  blockedUntil: row.blocked_until,
  forgetAt: row.forget_at,
  times: row.times === '' ? [] : row.times.split(' ').map(Number),
})
