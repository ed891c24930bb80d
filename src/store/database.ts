import { existsSync, renameSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Logger } from 'pino'
import { StartError } from '../errors/start-error.ts'

/** The records of a program: one SQLite file in the state folder. */
export interface Database {
  readonly sql: DatabaseSync
  /** Runs `work` in one transaction, or as a part of the open one; an exception rolls back and is rethrown. */
  transaction<T>(work: () => T): T
  /**
   * Like `transaction`, but without a sync of its own: the caller soon makes another commit, whose sync writes both to the
   * disk. A power cut before that sync loses this commit; a kill of the daemon does not.
   */
  transactionBeforeNext<T>(work: () => T): T
  /** Path of the damaged file, if this database replaced one. */
  readonly aside?: string
  close(): void
}

/** The schema of a program, one entry a change, applied in order and never edited once released. */
export type Migrations = readonly string[]

/**
 * Opens the database, creates it if it is missing and migrates its schema. A damaged file is kept as `*.corrupt-<time>`
 * and reported, and an empty database replaces it: the host must still answer.
 * @throws when a newer version of the daemon wrote the file, or the file cannot be created
 */
export function openDatabase(file: string, log: Logger, migrations: Migrations): Database {
  try {
    return open(file, migrations)
  } catch (error) {
    if (!isDamage(error) || !existsSync(file)) throw error
    const aside = `${file}.corrupt-${new Date().toISOString().replaceAll(':', '')}`
    for (const suffix of ['', '-wal', '-shm']) {
      if (existsSync(file + suffix)) renameSync(file + suffix, aside + suffix)
    }
    log.error(
      { err: error, aside },
      `the database was damaged; its file is kept and a new database is started; check the disk with dmesg --level=err, and recover what is left with sqlite3 ${aside} .recover`,
    )
    return { ...open(file, migrations), aside }
  }
}

function open(file: string, migrations: Migrations): Database {
  const sql = new DatabaseSync(file)
  try {
    // FULL: an acknowledged commit survives a power cut. It syncs the whole log, with all earlier commits.
    sql.exec(
      'PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON',
    )
    const check = sql.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
    if (check.quick_check !== 'ok')
      throw Object.assign(new Error(check.quick_check), { errcode: sqliteCorrupt })
    migrate(sql, migrations)
    // From now on a wait blocks every request, and no other process may write; see `lockState`.
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
      // SQLite rolls back by itself on some errors, see sqlite3_get_autocommit.html.
      if (isOpen(sql)) sql.exec('ROLLBACK')
      throw error
    }
  }
  return {
    sql,
    transaction,
    transactionBeforeNext(work) {
      // SQLite does not change this setting within a transaction.
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

// How long the event loop blocks when another process writes nevertheless, sqlite3(1) for example.
const busyMs = 5

// A function, because the compiler assumes that a property does not change after a check.
const isOpen = (sql: DatabaseSync) => sql.isTransaction

/** Applies the numbered migrations that the file lacks; each one in its own transaction. */
function migrate(sql: DatabaseSync, migrations: Migrations): void {
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
