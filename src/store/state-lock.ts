import { program } from '../base/program.ts'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StartError } from '../errors/start-error.ts'
import type { Logger } from 'pino'

/** Name of the file in a state folder that is locked. */
export const lockName = 'lock'

/** Another daemon uses the state folder. */
export class StateInUse extends StartError {
  override readonly name = 'StateInUse'
}

export interface StateLock {
  /**
   * Checks that the locked file is still the one in the folder; without its name, another daemon could lock a new one. Where it is gone, a
   * new one is locked; where that is not possible, as on a full disk, the next call tries it again.
   * @throws StateInUse where another daemon has locked the one that is there now
   */
  check(): void
  release(): void
}

/**
 * Locks the state folder for this process. Two daemons that write one database would fork the chain of the audit trail
 * and end each other's sessions. Node has no flock(2), so this uses the lock that SQLite takes on an empty file next to
 * the database (fcntl(2)), in a transaction that never ends. The kernel releases it when the process ends in any way.
 * @throws StateInUse
 */
export function lockState(directory: string, log: Logger): StateLock {
  let held = takeLock(directory, log)
  return {
    check() {
      if (!held || inodeOf(directory) === held.inode) return
      const { sql } = held
      const next = takeLock(directory, log)
      if (!next) return
      // The former one is released last: a second daemon may be about to start.
      sql.close()
      held = next
      log.warn(
        { file: join(directory, lockName) },
        'the lock of the state folder was removed while the daemon ran, and is made again; leave it there: without it, a second daemon could start',
      )
    },
    release() {
      held?.sql.close()
      held = undefined
    },
  }
}

interface Held {
  readonly sql: DatabaseSync
  readonly inode: string | undefined
}

function inodeOf(directory: string): string | undefined {
  const found = statSync(join(directory, lockName), { throwIfNoEntry: false })
  return found && `${found.dev}:${found.ino}`
}

function takeLock(directory: string, log: Logger): Held | undefined {
  const sql = new DatabaseSync(join(directory, lockName), { open: false, timeout: 0 })
  try {
    sql.open()
    // A journal would be one more file in the folder; nothing is ever written.
    sql.exec('PRAGMA journal_mode = MEMORY')
    sql.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    if (sql.isOpen) sql.close()
    if (isBusy(error)) {
      throw new StateInUse(
        `${directory} is in use by another ${program.daemon}: find it with systemctl status ${program.daemon}, and stop it first`,
      )
    }
    // A full or read-only disk must not keep the host from answering.
    log.error(
      { err: error, directory },
      'the state folder cannot be locked; a second daemon could start on it',
    )
    return undefined
  }
  return { sql, inode: inodeOf(directory) }
}

// SQLITE_BUSY of https://www.sqlite.org/rescode.html
const isBusy = (error: unknown) => ((error as { errcode?: number }).errcode ?? 0) % 256 === 5
