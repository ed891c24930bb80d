// Schema changes are numbered migrations (`src/edgehostd/migrations.ts`, `src/edgeplatformd/migrations.ts`), applied in one transaction. Each start
// checks the pages of the database and compares its structure (`store/structure.ts`: tables, columns, indexes, triggers, not the SQL text)
// with the one that the migrations up to its number make in memory. A difference is damage: a host renames the file and creates a new one,
// since it must answer. Damage that only a statement sees is noted beside the database (`.suspect`), and the next start reads every index
// too. A migration that fails on an intact file is our fault: the start is refused and the file stays as it was, else one faulty migration
// would empty a fleet. A database of a newer version is refused and not changed; it is newer only if every table that this version knows is
// there.
//
// `store/leftovers.ts` is the one place where folders that no row names are cleared away: it removes them only where the database is complete
// (`audit.isComplete`: the head beside it was there, and the database is not behind it), and moves them aside otherwise. A platform gives
// `openState` the checks that tell a first start from a loss (`WholeState`, `platform/system/whole-state.ts`): it writes database, tenant,
// secret and trail in this order, so that each one without the ones before it is a loss, and a kill between them is none.
// `backup/replace-state.ts` is `recover` and `fresh-start`: they make a folder beside and exchange the two as a restore does; `salvage.ts`
// reads a damaged table from both ends and from keys between. The lock of the state folder is compared each minute with the file of its
// name, by inode.

import { access, constants, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { Room } from './room.ts'
import {
  createSecret,
  createSecrets,
  isOfAnotherState,
  putSecretMark,
  type Secrets,
} from '../secrets/secrets.ts'
import { endedSecretFile, isUsableSecret, readOrMakeSecret, secretFile } from '../secrets/secret-file.ts'
import { databaseName, headName, noteName } from '../store/database-name.ts'
import { DatabaseDamaged, openDatabase, type Database } from '../store/database.ts'
import type { Migrations } from '../store/structure.ts'
import { createDiskReserve, type DiskReserve } from '../store/disk-reserve.ts'
import { createReader, type Reader } from '../store/reader.ts'
import { createStoreRoom } from '../store/room.ts'
import { lockState, StateInUse } from '../store/state-lock.ts'
import type { Clock } from '../system/clock.ts'
import { sizeOf, isThere, sweepTemporary } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import { requireRegularIfPresent } from '../system/regular-file.ts'

export interface StateOptions {
  readonly settings: { readonly directory: string }
  /** The schema of the database. */
  readonly migrations: Migrations
  /** Most different reads that wait for the reading thread; by default the bound of the reader. */
  readonly maximumWaiting?: number
  /** Given by a program that does not replace a lost state by a new one; a host has none, since it must answer whatever is lost. */
  readonly whole?: WholeState
  readonly clock: Clock
  readonly log: Logger
}

/** Checks that tell the first start from a state that was lost in part. */
export interface WholeState {
  /** Whether there are files that were named by a database. */
  hasFiles(stateDirectory: string): Promise<boolean>
  /** Whether the database has the row that the first start writes. */
  hasStarted(database: Database): boolean
  /** Whether the database has rows that are written only once there is a secret. */
  isUsed(database: Database): boolean
  /** Writes that row, unless it is there: the last step of a first start before the secret is made. */
  begin(database: Database): void
  /** The error that names the problem and the commands. */
  refuse(problem: string): Error
}

/** The state that outlives the daemon: its folder, the database, and the secret from which all keys are derived. */
export interface State {
  readonly directory: string
  readonly database: Database
  /** Runs a query in another thread. */
  readonly read: Reader['read']
  readonly secrets: Secrets
  /** The space for the work that goes on when the disk is full. */
  readonly reserve: DiskReserve
  /** Audit records of the created parts, to be recorded once there is a trail. */
  readonly auditEntries: readonly SystemEntry[]
  readonly room: Room
  /** Closes the database; nothing may be written afterwards. */
  close(): Promise<void>
}

/**
 * Opens the state folder, and creates it if it is missing.
 * @throws StateInUse when another daemon uses it; the error of `whole` where a part of the state is lost
 */
export async function openState({
  settings: { directory },
  migrations,
  maximumWaiting,
  whole,
  clock,
  log,
}: StateOptions): Promise<State> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  // SQLite reports a read-only disk only as "unable to open database file".
  await access(directory, constants.W_OK)
  const lock = lockState(directory, log)
  await sweepTemporary(directory)
  await sweepTemporary(join(directory, 'tls'))
  const reserve = createDiskReserve(directory, log)
  // A start on a full disk needs some too.
  reserve.makeRoom()
  const databaseFile = join(directory, databaseName)
  // SQLite reports a pipe or a folder at this path with the same words.
  requireRegularIfPresent(databaseFile)
  const secretPath = join(directory, secretFile)
  const hadState =
    whole !== undefined &&
    ((await isUsableSecret(secretPath, secretBytes)) || (await whole.hasFiles(directory)))
  if (whole && hadState && ((await sizeOf(databaseFile)) ?? 0) === 0) {
    lock.release()
    throw whole.refuse(`the database ${databaseFile} is missing or empty, and there was a state`)
  }
  const database = openWhole()
  const reader = createReader(database.sql, maximumWaiting === undefined ? {} : { maximumWaiting })
  const made: SystemEntry[] = []
  const endedPath = join(directory, endedSecretFile)
  const isEnded = await isThere(endedPath)
  // After the first row, so that a secret without one is a lost database.
  const wasUsed = whole?.isUsed(database) ?? false
  whole?.begin(database)
  const secret = await readOrMakeSecret(secretPath, secretBytes, (isReplaced) => {
    if (whole && wasUsed && !isEnded)
      throw whole.refuse(`the secret ${secretPath} is ${isReplaced ? 'damaged' : 'missing'}`)
    if (isReplaced)
      log.warn({ file: secretPath }, 'the secret was damaged and is replaced: all users have to log in again')
    made.push({ action: 'create', kind: 'secret', message: 'Make the secret that all tokens depend on' })
    return createSecret()
  }).catch((error: unknown) => {
    database.close()
    lock.release()
    throw error
  })
  const secrets = createSecrets(secret)
  // A new secret and the secret of a recovered state are meant.
  const isMeant = made.length > 0 || (await isThere(join(directory, noteName)))
  if (!isMeant && isOfAnotherState(database, secrets)) {
    if (whole) {
      database.close()
      lock.release()
      throw whole.refuse(
        `the secret ${secretPath} is of another state than the database ${databaseFile}: put back the secret that was there`,
      )
    }
    log.warn(
      { file: secretPath },
      'the secret is another one than at the last start: all users have to log in again, and sensitive values that were stored with the former one cannot be read; put the former one back and restart the daemon, or give the values again',
    )
    made.push({
      action: 'update',
      kind: 'secret',
      message: 'Start with another secret than the last time; it was replaced while the daemon did not run',
    })
  }
  putSecretMark(database, secrets)
  if (isEnded) await rm(endedPath, { force: true })
  const storeRoom = createStoreRoom({ directory, databaseFile, database, reserve, clock, log })
  return {
    directory,
    database,
    read: reader.read,
    secrets,
    reserve,
    auditEntries: made,
    room: {
      ...storeRoom,
      jobs: [
        ...(storeRoom.jobs ?? []),
        { name: 'state lock', schedule: '31 * * * * *', stuckAfterMs: 300_000, run: checkLock },
      ],
    },
    async close() {
      await reader.close()
      database.close()
      lock.release()
    },
  }

  /** Two daemons must not write one database: the one that has lost the folder ends at once, without another write. */
  function checkLock(): void {
    try {
      lock.check()
    } catch (error) {
      if (!(error instanceof StateInUse)) throw error
      setImmediate(() => {
        throw error
      })
    }
  }

  function openWhole(): Database {
    let opened: Database | undefined
    try {
      opened = openDatabase(databaseFile, log, migrations, {
        beside: [join(directory, headName)],
        ...(whole ? { onDamage: 'refuse' } : {}),
      })
      if (!whole || !hadState || whole.hasStarted(opened)) return opened
    } catch (error) {
      lock.release()
      if (!whole || !(error instanceof DatabaseDamaged)) throw error
      throw whole.refuse(`the database ${databaseFile} is damaged: ${error.message}`)
    }
    opened.close()
    lock.release()
    throw whole.refuse(`the database ${databaseFile} is an empty one, and there was a state`)
  }
}

const secretBytes = 32
