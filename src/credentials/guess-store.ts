import type { Database } from '../store/database.ts'

/** The tables of failed logins and locks, of both programs. They are a part of their first schema: not edited. */
export const guessTables = `
  CREATE TABLE guess (
    key TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    blocked_until INTEGER NOT NULL,
    forget_at INTEGER NOT NULL,
    times TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX guess_forget_at ON guess (forget_at);
  CREATE TABLE guess_time (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO guess_time VALUES (1, 0);
`

/** A counter as it is stored. Times are milliseconds of the guard's clock. */
export interface KeptGuess {
  /** The kind of counter and its key; typed names are hashed. */
  readonly key: string
  readonly failures: number
  /** 0 when the key is not blocked. */
  readonly blockedUntil: number
  readonly forgetAt: number
  /** Times of the failures, the oldest first; empty for a counter that has only a number. */
  readonly times: readonly number[]
}

/**
 * Failures and locks on the disk. Their clock stops while the daemon is down and is independent of the date: a restored
 * lock has the same remaining time, whatever happened to the clock of the host.
 */
export interface GuessStore {
  /** The last stored time of the clock, and all counters stored until then, the oldest first. */
  read(): { readonly now: number; readonly kept: readonly KeptGuess[] }
  /** A kill does not lose it. A power cut does, until the next sync, which comes with the audit record of the refusal. */
  put(kept: readonly KeptGuess[], now: number): void
  remove(key: string): void
  /** Removes expired counters, and stores the current time; writes nothing when nothing is stored. */
  putTime(now: number): void
}

/**
 * @param maximumRows above it, rows are removed: first those that are not blocked, of these those with the fewest failures,
 *   and of these those that would be forgotten next
 */
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
    read() {
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
        // Removes more than needed, otherwise each new row of a flood would scan all rows.
        if (tooMany > 0) trim.run(now, tooMany + Math.floor(maximumRows / 10))
      }),
    remove: (key) => transactionBeforeNext(() => void remove.run(key)),
    putTime(now) {
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
