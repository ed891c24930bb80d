import { access, constants, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SystemEntry } from './audit/own-entries.ts'
import type { Room } from './room.ts'
import { createSecret, createSecrets, type Secrets } from './secrets/secrets.ts'
import { readOrMakeSecret, secretFile } from './secrets/secret-file.ts'
import { databaseName } from './store/database-name.ts'
import { openDatabase, type Database, type Migrations } from './store/database.ts'
import { createDiskReserve, type DiskReserve } from './store/disk-reserve.ts'
import { createReader, type Reader } from './store/reader.ts'
import { createStoreRoom } from './store/room.ts'
import { lockState } from './store/state-lock.ts'
import type { Clock } from './system/clock.ts'
import { sweepTemporary } from './system/files.ts'
import type { Logger } from './system/log.ts'
import { requireRegularIfPresent } from './system/regular-file.ts'

export interface StateOptions {
  readonly settings: { readonly directory: string }
  /** The schema of the database. */
  readonly migrations: Migrations
  /** How many different reads may wait for the thread that makes them; by default that of the reader. */
  readonly maximumWaiting?: number
  readonly clock: Clock
  readonly log: Logger
}

/** The state that outlives the daemon: its folder, the database, and the secret from which all keys are derived. */
export interface State {
  readonly directory: string
  readonly database: Database
  /** Runs a query in another thread. */
  readonly read: Reader['read']
  readonly secrets: Secrets
  /** The space for what goes on when the disk is full. */
  readonly reserve: DiskReserve
  /** Audit records of what was created, to be recorded once there is a trail. */
  readonly auditEntries: readonly SystemEntry[]
  readonly room: Room
  /** Closes the database; nothing may be written afterwards. */
  close(): Promise<void>
}

/**
 * Opens the state folder, and creates it if it is missing.
 * @throws StateInUse when another daemon uses it
 */
export async function openState({
  settings: { directory },
  migrations,
  maximumWaiting,
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
  const database = openDatabase(databaseFile, log, migrations)
  const reader = createReader(database.sql, maximumWaiting === undefined ? {} : { maximumWaiting })
  const made: SystemEntry[] = []
  const secretPath = join(directory, secretFile)
  const secret = await readOrMakeSecret(secretPath, 32, (isReplaced) => {
    if (isReplaced)
      log.warn({ file: secretPath }, 'the secret was damaged and is replaced: all users have to log in again')
    made.push({ action: 'create', kind: 'secret', message: 'Make the secret that all tokens depend on' })
    return createSecret()
  })
  return {
    directory,
    database,
    read: reader.read,
    secrets: createSecrets(secret),
    reserve,
    auditEntries: made,
    room: createStoreRoom({ directory, databaseFile, database, reserve, clock, log }),
    async close() {
      await reader.close()
      database.close()
      lock.release()
    },
  }
}
