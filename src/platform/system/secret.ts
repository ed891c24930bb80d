import { createSeal, type Seal } from '../../secrets/seal.ts'
import { type Secrets, createSecret, createSecrets, putSecretMark } from '../../secrets/secrets.ts'
import { chown, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { SystemEntry } from '../../audit/own-entries.ts'
import { program } from '../../base/program.ts'
import { StartError, StartRefused } from '../../errors/start-error.ts'
import { nextSecretFile, readOrMakeSecret, secretFile } from '../../secrets/secret-file.ts'
import { databaseName } from '../../store/database-name.ts'
import { DatabaseDamaged, openDatabase, type Database } from '../../store/database.ts'
import type { Migrations } from '../../store/structure.ts'
import { lockState } from '../../store/state-lock.ts'
import { isThere, replaceFile, syncFolder } from '../../system/files.ts'
import { notWhole } from './whole-state.ts'

/** A column of texts that are sealed, each row with a uid. */
interface SealedColumn {
  readonly table: string
  readonly column: string
  /** Purpose of the key; it never changes. */
  readonly purpose: string
}

/** Every sealed column of the database: one that is not named here could not be read after a change of the secret. */
export const sealedColumns = {
  profileVariables: {
    table: 'cluster_profile',
    column: 'variables',
    purpose: 'sensitive values of cluster profiles',
  },
  clusterValues: { table: 'cluster', column: 'given', purpose: 'sensitive values of clusters' },
  clusterDescriptions: { table: 'cluster', column: 'head', purpose: 'descriptions of clusters' },
  cloudSecrets: { table: 'cloud_account', column: 'secret_key', purpose: 'secrets of cloud accounts' },
  kubeconfigs: { table: 'cluster', column: 'kubeconfig', purpose: 'kubeconfigs of clusters' },
} as const satisfies Readonly<Record<string, SealedColumn>>

/** The seal of the texts of a column. */
export const sealOf = (secrets: Secrets, { purpose }: SealedColumn): Seal =>
  createSeal(secrets.derive(purpose))

/** Says that the secret was changed, until the trail has it. */
const changedFile = 'secret.changed'
const secretBytes = 32

interface ChangeOptions {
  readonly stateDirectory: string
  readonly migrations: Migrations
  readonly log: Logger
}

/** Result of a change. */
interface SecretChange {
  /** Number of texts sealed with the new secret. */
  readonly sealed: number
  /** Number of texts unreadable with the former one too, which stay as they are. */
  readonly unreadable: number
}

/**
 * Replaces the secret of the state folder, and reseals the data sealed with it. An interruption loses nothing: the new secret is on the disk
 * first, and the same call finishes the change.
 * @throws StateInUse while the platform runs, StartError without a state or with a damaged one, and the system's error
 */
export async function changeSecret({
  stateDirectory,
  migrations,
  log,
}: ChangeOptions): Promise<SecretChange> {
  const databaseFile = join(stateDirectory, databaseName)
  if (!(await isThere(databaseFile)))
    throw new StartError(
      `${stateDirectory} has no database: there is no platform whose secret could be changed`,
    )
  const lock = lockState(stateDirectory, log)
  try {
    const present = join(stateDirectory, secretFile)
    const next = join(stateDirectory, nextSecretFile)
    const changed = join(stateDirectory, changedFile)
    const before = await readOrMakeSecret(present, secretBytes, () => {
      throw new StartError(`${present} is damaged or missing: see ${program.ctl} recover`)
    })
    // First of all: a new secret beside a database that cannot be opened would keep the platform from saying what to do about that.
    const database = openWhole(databaseFile, log, migrations)
    try {
      const after = await readOrMakeSecret(next, secretBytes, createSecret)
      // The daemon has an account of its own.
      const { uid, gid } = await stat(present)
      await chown(next, uid, gid)
      const done = sealAnew(database, createSecrets(before), createSecrets(after))
      await replaceFile(changed, '', 0o600)
      await chown(changed, uid, gid)
      await rename(next, present)
      await syncFolder(stateDirectory)
      return done
    } finally {
      database.close()
    }
  } finally {
    lock.release()
  }
}

function openWhole(file: string, log: Logger, migrations: Migrations): Database {
  try {
    return openDatabase(file, log, migrations, { onDamage: 'refuse' })
  } catch (error) {
    if (error instanceof DatabaseDamaged) throw notWhole(`the database ${file} is damaged: ${error.message}`)
    throw error
  }
}

/** To be called before the state is opened. @throws StartRefused where a change of the secret was interrupted */
export async function requireFinishedChange(stateDirectory: string): Promise<void> {
  if (await isThere(join(stateDirectory, nextSecretFile)))
    throw new StartRefused(
      `a change of the secret of ${stateDirectory} was interrupted: run it again with ${program.ctl} secret change, then systemctl start ${program.daemon}. Until then the daemon does not start, and nothing is lost`,
    )
}

/**
 * Records a change of the secret in the trail, once the platform runs again.
 * @param record returns when the record is kept
 */
export async function recordChange(
  stateDirectory: string,
  record: (entry: SystemEntry) => void,
): Promise<void> {
  const changed = join(stateDirectory, changedFile)
  if (!(await isThere(changed))) return
  record({
    action: 'update',
    kind: 'secret',
    message: `Change the secret that all tokens depend on, with ${program.ctl} secret change`,
  })
  await rm(changed, { force: true })
}

function sealAnew(database: Database, before: Secrets, after: Secrets): SecretChange {
  const done = { sealed: 0, unreadable: 0 }
  database.transaction(() => {
    for (const each of Object.values<SealedColumn>(sealedColumns)) {
      const { table, column } = each
      const [former, next] = [sealOf(before, each), sealOf(after, each)]
      const uids = database.sql.prepare(`SELECT uid FROM ${table} WHERE ${column} IS NOT NULL`).all()
      const read = database.sql.prepare(`SELECT ${column} AS sealed FROM ${table} WHERE uid = ?`)
      const write = database.sql.prepare(`UPDATE ${table} SET ${column} = ? WHERE uid = ?`)
      for (const { uid = '' } of uids) {
        const { sealed } = read.get(uid) as { readonly sealed: Uint8Array }
        const text = former.open(sealed)
        if (text !== undefined) write.run(next.seal(text), uid)
        // A text that an interrupted change has resealed can be read with the new one.
        const isReadable = text !== undefined || next.open(sealed) !== undefined
        done[isReadable ? 'sealed' : 'unreadable'] += 1
      }
    }
    putSecretMark(database, after)
  })
  return done
}
