import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createAudit, type Audit } from './audit/audit.ts'
import { createSecret, deriveKeys, type AuthKeys } from './auth/keys.ts'
import type { Config } from './config/schema.ts'
import { openDatabase, type Database } from './store/database.ts'
import { createReader } from './store/reader.ts'
import { lockState } from './store/state-lock.ts'
import type { Clock } from './system/clock.ts'
import { sweepTemporary } from './system/files.ts'
import type { Logger } from './system/log.ts'
import { requireRegularIfPresent } from './system/regular-file.ts'
import { readOrMakeSecret, secretFile } from './secrets/secret-file.ts'

export interface StateOptions {
  readonly config: Pick<Config, 'audit' | 'state'>
  readonly clock: Clock
  readonly log: Logger
  /** As of `createAudit`. */
  readonly onStranger: () => void
}

/** What outlives the daemon: its folder, database, trail, and the secret that all keys come from. */
export interface State {
  readonly directory: string
  readonly database: Database
  readonly audit: Audit
  readonly keys: AuthKeys
  /** Nothing is written after it. */
  close(): Promise<void>
}

/**
 * Opens the state folder, and makes it where there is none.
 * @throws StateInUse when another daemon has it
 */
export async function openState({ config, clock, log, onStranger }: StateOptions): Promise<State> {
  const { directory } = config.state
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const lock = lockState(directory, log)
  await sweepTemporary(directory)
  await sweepTemporary(join(directory, 'tls'))
  const databaseFile = join(directory, 'edgehostd.db')
  // SQLite would say only that it cannot open it.
  requireRegularIfPresent(databaseFile)
  const database = openDatabase(databaseFile, log)
  const reader = createReader(database.sql)
  const audit = createAudit({
    ...{ settings: config.audit, database, read: reader.read, clock, log },
    onStranger,
  })
  const secretPath = join(directory, secretFile)
  const secret = await readOrMakeSecret(secretPath, 32, (isReplaced) => {
    if (isReplaced)
      log.warn({ file: secretPath }, 'the secret was damaged and is made anew: everybody has to log in again')
    audit.record({ action: 'create', kind: 'secret', message: 'Make the secret that all tokens depend on' })
    return createSecret()
  })
  return {
    directory,
    database,
    audit,
    keys: deriveKeys(secret),
    async close() {
      await reader.close()
      database.close()
      lock.release()
    },
  }
}
