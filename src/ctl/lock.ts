import { closeSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { program } from '../base/program.ts'
import { Failure } from './exit-codes.ts'
import { makePrivateFolder, refused } from './folder.ts'

const defaultTimeoutMs = 30_000

/** How a lock is waited for. */
export interface LockWait {
  /** Milliseconds; 30 seconds where it is not given. */
  readonly timeoutMs?: number
  /** Says that another process still has the lock. */
  readonly held?: string
}

/**
 * Runs work that two invocations must not run at once. The lock is that of SQLite on an empty file, since Node has no
 * flock(2): the kernel releases it when the process ends, however that happens.
 * @throws Failure
 */
export async function withLock<T>(
  path: string,
  work: () => Promise<T>,
  { timeoutMs = defaultTimeoutMs, held }: LockWait = {},
): Promise<T> {
  makePrivateFolder(dirname(path))
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw refused(path, 'written', error)
  }
  const { DatabaseSync } = await import('node:sqlite')
  const lock = new DatabaseSync(path, { timeout: timeoutMs })
  try {
    try {
      lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      // https://www.sqlite.org/rescode.html: SQLITE_BUSY
      const isHeld = (error as { errcode?: number }).errcode === 5
      const seconds = timeoutMs / 1_000
      throw isHeld
        ? new Failure(
            'failed',
            held ?? `another ${program.ctl} has held ${path} for ${seconds} seconds; end it and try again`,
          )
        : refused(path, 'locked', error)
    }
    return await work()
  } finally {
    lock.close()
  }
}
