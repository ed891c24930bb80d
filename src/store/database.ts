import { existsSync, openSync, closeSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Logger } from 'pino'
import { program } from '../base/program.ts'
import { StartRefused } from '../errors/start-error.ts'
import {
  differencesOf,
  missingTables,
  newestSchema,
  structureAt,
  structureOf,
  type Migrations,
} from './structure.ts'
import { isUnwritable } from './unwritable.ts'

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

export interface OpenOptions {
  /** Treatment of a damaged file: a host moves it aside and answers, a platform does not start. */
  readonly onDamage?: 'moveAside' | 'refuse'
  /** Files about this database, which are removed when it is moved aside. */
  readonly beside?: readonly string[]
}

/** The file of a database is damaged. */
export class DatabaseDamaged extends Error {
  override readonly name = 'DatabaseDamaged'
}

/** Files of SQLite that belong to a database. */
const partsOf = (file: string) => ['', '-wal', '-shm'].map((suffix) => file + suffix)

const suspectName = (file: string) => `${file}.suspect`

/**
 * Notes that SQLite has found damage in a database that was open: its next opening reads every index too, which takes ten times as long as
 * the check at each start and finds damage that the check misses.
 */
export function suspectDatabase(file: string): void {
  try {
    writeFileSync(suspectName(file), '')
  } catch {
    // A full or read-only disk; the next failure notes it.
  }
}

/**
 * Opens the database, creates it if it is missing and migrates its schema. Before that its pages are checked, and its structure is compared
 * with the one that the migrations up to its number make. A damaged file is kept as `*.corrupt-<time>` and reported, and an empty database
 * replaces it: the host must still answer. A file that is intact and that a migration fails on is left as it is: that is our fault, and
 * another version of the program can read it.
 * @throws StartRefused when a newer version of the daemon wrote the file, or one that is too old, or a migration fails; DatabaseDamaged with
 *   `refuse`; and when the file cannot be created
 */
export function openDatabase(
  file: string,
  log: Logger,
  migrations: Migrations,
  options: OpenOptions = {},
): Database {
  try {
    return open(file, log, migrations)
  } catch (error) {
    if (!(error instanceof DatabaseDamaged) || options.onDamage === 'refuse') throw error
    const aside = `${file}.corrupt-${new Date().toISOString().replaceAll(':', '')}`
    for (const part of partsOf(file)) if (existsSync(part)) renameSync(part, aside + part.slice(file.length))
    for (const name of [suspectName(file), ...(options.beside ?? [])]) rmSync(name, { force: true })
    log.error(
      { err: error, aside },
      `the database was damaged; its file is kept and a new database is started; check the disk with dmesg --level=err, and recover what is left with sqlite3 ${aside} .recover`,
    )
    return { ...open(file, log, migrations), aside }
  }
}

function open(file: string, log: Logger, migrations: Migrations): Database {
  if (hasForeignFormat(file)) throw new DatabaseDamaged('its header names a format that SQLite does not have')
  const sql = new DatabaseSync(file)
  try {
    examined(() => {
      // FULL: an acknowledged commit survives a power cut. It syncs the whole log, with all earlier commits.
      sql.exec(
        'PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON',
      )
      checkPages(sql, file)
    })
    migrate(sql, migrations)
    // From now on a wait blocks every request, and no other process may write; see `lockState`.
    sql.exec(`PRAGMA busy_timeout = ${busyMs}`)
  } catch (error) {
    sql.close()
    throw error
  }
  let isSuspect = false
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
      if (isDamage(error) && !isSuspect) {
        isSuspect = true
        suspectDatabase(file)
        log.error(
          { err: error, file },
          `the database is damaged; the next start checks all of it: systemctl restart ${program.daemon}`,
        )
      }
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

// Time that the event loop blocks when another process writes nevertheless, sqlite3(1) for example.
const busyMs = 5

// A function, because the compiler assumes that a property does not change after a check.
const isOpen = (sql: DatabaseSync) => sql.isTransaction

function checkPages(sql: DatabaseSync, file: string): void {
  const isSuspect = existsSync(suspectName(file))
  const pragma = isSuspect ? 'integrity_check' : 'quick_check'
  const [found] = Object.values(sql.prepare(`PRAGMA ${pragma}(1)`).get() ?? {})
  if (found !== 'ok') throw new DatabaseDamaged(String(found))
  if (isSuspect) rmSync(suspectName(file), { force: true })
}

/** Applies the numbered migrations that the file lacks, all in one transaction: where one fails, the file is as it was. */
function migrate(sql: DatabaseSync, migrations: Migrations): void {
  const newest = newestSchema(migrations)
  const { user_version: version } = sql.prepare('PRAGMA user_version').get() as { user_version: number }
  const known = structureAt(migrations, Math.min(version, newest))
  const found = examined(() => structureOf(sql))
  if (version > newest) {
    const [missing] = missingTables(found, known)
    if (missing !== undefined)
      throw new DatabaseDamaged(`its schema would be ${version}, and the ${missing} is missing`)
    throw new StartRefused(
      `the database has schema ${version}, this daemon knows up to ${newest}: install the newer daemon again with dpkg --install`,
    )
  }
  if (version < 0) throw new DatabaseDamaged(`its schema would be ${version}`)
  const isNew = version === 0
  if (!isNew && version < migrations.first)
    throw new StartRefused(describeTooOld('database', version, migrations))
  const differences = differencesOf(found, known)
  if (differences.length > 0) throw new DatabaseDamaged(differences.slice(0, 5).join(', '))
  if (version === newest) return
  sql.exec('BEGIN IMMEDIATE')
  for (const [index, statements] of migrations.steps.entries()) {
    const number = migrations.first + index
    if (number <= version) continue
    try {
      sql.exec(statements)
    } catch (error) {
      throw failedMigration(sql, number, error)
    }
  }
  sql.exec(`PRAGMA user_version = ${newest}; COMMIT`)
}

/** The refusal of a database, or the one of a backup, that this program does not upgrade. */
export const describeTooOld = (what: string, version: number, { first, install }: Migrations): string =>
  `the ${what} has schema ${version}, this program upgrades those from ${first} on: install ${install} first and start it once, then this one. The file is kept as it is`

/** Distinguishes damage, which this check does see, from a fault of ours. */
function failedMigration(sql: DatabaseSync, schema: number, error: unknown): unknown {
  if (sql.isTransaction) sql.exec('ROLLBACK')
  if (isUnwritable(error)) return error
  try {
    examined(() => {
      const { integrity_check: check } = sql.prepare('PRAGMA integrity_check(1)').get() as {
        integrity_check: string
      }
      if (check !== 'ok') throw new DatabaseDamaged(check, { cause: error })
      if (isDamage(error)) throw error
    })
  } catch (found) {
    return found
  }
  return new StartRefused(
    `the database is intact, and its change to schema ${schema} fails: ${(error as Error).message}. This is a fault of this version; nothing was changed: install the version from before again with dpkg --install, and report this line`,
    { cause: error },
  )
}

// Primary result codes of https://www.sqlite.org/rescode.html
const sqliteError = 1
const sqliteCorrupt = 11
const sqliteFormat = 24
const sqliteNotADatabase = 26

const codeOf = (error: unknown) => ((error as { errcode?: number }).errcode ?? 0) & 0xff

/** Whether an error of SQLite says that the file is damaged. */
export const isDamage = (error: unknown): boolean =>
  error instanceof DatabaseDamaged || [sqliteCorrupt, sqliteNotADatabase].includes(codeOf(error))

/**
 * Runs statements that no intact file refuses.
 * @throws DatabaseDamaged where the file is at fault, other errors as they are
 */
function examined<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    const isOfFile = isDamage(error) || [sqliteError, sqliteFormat].includes(codeOf(error))
    if (error instanceof DatabaseDamaged || !isOfFile) throw error
    throw new DatabaseDamaged((error as Error).message, { cause: error })
  }
}

/** Whether the header asks for a format that SQLite does not have, https://www.sqlite.org/fileformat.html: it opens such a file for reads alone. */
function hasForeignFormat(file: string): boolean {
  if (!existsSync(file)) return false
  const header = Buffer.alloc(20)
  const descriptor = openSync(file, 'r')
  try {
    if (readSync(descriptor, header, 0, header.length, 0) < header.length) return false
  } finally {
    closeSync(descriptor)
  }
  return Math.max(header[18] ?? 0, header[19] ?? 0) > 2
}
