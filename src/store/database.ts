import { existsSync, renameSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Logger } from 'pino'
import { StartError } from '../errors/start-error.ts'
import { migrations } from './migrations.ts'

/** The daemon's records: one SQLite file in the state folder. */
export interface Database {
  readonly sql: DatabaseSync
  /** Runs `work` in one transaction, or as a part of the one that is open; an exception rolls back and is thrown on. */
  transaction<T>(work: () => T): T
  /**
   * The same where a commit that waits follows soon: that one brings both to the disk, and there is one wait for it
   * instead of two. A kill of the daemon loses nothing in between, only a power cut does.
   */
  transactionBeforeNext<T>(work: () => T): T
  /** Where the file lies that was damaged, if this one was begun in its place. */
  readonly aside?: string
  close(): void
}

/**
 * Opens the database, makes it if it is missing and brings its schema up to date.
 * A file that is damaged is kept beside as `*.corrupt-<time>` and reported, and an empty one takes its place:
 * the host must still answer.
 * @throws when the file belongs to a newer version of the daemon, or cannot be made at all
 */
export function openDatabase(file: string, log: Logger): Database {
  try {
    return open(file)
  } catch (error) {
    if (!isDamage(error) || !existsSync(file)) throw error
    const aside = `${file}.corrupt-${new Date().toISOString().replaceAll(':', '')}`
    for (const suffix of ['', '-wal', '-shm']) {
      if (existsSync(file + suffix)) renameSync(file + suffix, aside + suffix)
    }
    log.error(
      { err: error, aside },
      `the database was damaged; it is kept aside and a new one is begun; look at the disk with dmesg --level=err, and at what is left with sqlite3 ${aside} .recover`,
    )
    return { ...open(file), aside }
  }
}

function open(file: string): Database {
  const sql = new DatabaseSync(file)
  try {
    // FULL: a commit that was acknowledged survives a power cut. It syncs the whole log, with all commits before.
    sql.exec(
      'PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON',
    )
    const check = sql.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
    if (check.quick_check !== 'ok')
      throw Object.assign(new Error(check.quick_check), { errcode: sqliteCorrupt })
    migrate(sql)
    // From now on a wait holds up every request, and no other process may write; see `lockState`.
    sql.exec(`PRAGMA busy_timeout = ${busyMs}`)
  } catch (error) {
    sql.close()
    throw error
  }
  const [begin, commit] = [sql.prepare('BEGIN IMMEDIATE'), sql.prepare('COMMIT')]
  function transaction<T>(work: () => T): T {
    if (isOpen(sql)) return work()
    begin.run()
    try {
      const result = work()
      commit.run()
      return result
    } catch (error) {
      // SQLite rolls back by itself on some errors, sqlite3_get_autocommit.html says which.
      if (isOpen(sql)) sql.exec('ROLLBACK')
      throw error
    }
  }
  return {
    sql,
    transaction,
    transactionBeforeNext(work) {
      // SQLite does not change it within a transaction.
      if (isOpen(sql)) return work()
      sql.exec('PRAGMA synchronous = NORMAL')
      try {
        return transaction(work)
      } finally {
        sql.exec('PRAGMA synchronous = FULL')
      }
    },
    close: () => sql.close(),
  }
}

// The event loop stands still for so long where another process writes after all, sqlite3(1) for example.
const busyMs = 5

// A function, since the compiler takes a property for unchanged after a look at it.
const isOpen = (sql: DatabaseSync) => sql.isTransaction

/** Applies the numbered migrations that the file has not seen; each one is its own transaction. */
function migrate(sql: DatabaseSync): void {
  const { user_version: version } = sql.prepare('PRAGMA user_version').get() as { user_version: number }
  if (version > migrations.length) {
    throw new StartError(
      `the database has schema ${version}, this daemon knows up to ${migrations.length}: install the newer daemon again with dpkg --install`,
    )
  }
  migrations.slice(version).forEach((statements, index) => {
    sql.exec(`BEGIN IMMEDIATE; ${statements}; PRAGMA user_version = ${version + index + 1}; COMMIT`)
  })
}

// Primary result codes of https://www.sqlite.org/rescode.html
const sqliteCorrupt = 11
const sqliteNotADatabase = 26

function isDamage(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode
  return code !== undefined && [sqliteCorrupt, sqliteNotADatabase].includes(code & 0xff)
}
