import { closeSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { Failure } from './exit-codes.ts'
import { makePrivateFolder } from './folder.ts'

const patienceMs = 30_000

/**
 * Does something that two invocations must not do at once. The lock is SQLite's on an empty file, since Node has no
 * flock(2): the kernel gives it back when the process ends, however that happens.
 */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  makePrivateFolder(dirname(path))
  closeSync(openSync(path, 'a', 0o600))
  const { DatabaseSync } = await import('node:sqlite')
  const lock = new DatabaseSync(path, { timeout: patienceMs })
  try {
    try {
      lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      throw new Failure('failed', `another edgehostctl holds ${path} for too long`, { cause: error })
    }
    return await work()
  } finally {
    lock.close()
  }
}
