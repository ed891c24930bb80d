import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { program } from '../base/program.ts'
import { systemReason } from '../errors/system-reason.ts'
import { readRegularFileSync, textFileBytes } from '../system/regular-file.ts'
import { Failure } from './exit-codes.ts'

/**
 * The folder of the keys of hosts and of the tokens: XDG Base Directory Specification 0.8.
 * @throws Failure when there is no home folder
 */
export function configFolder(environment: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME: base = '' } = environment
  return join(isAbsolute(base) ? base : join(homeFolder(), '.config'), program.ctl)
}

function homeFolder(): string {
  let home = ''
  try {
    home = homedir()
  } catch {
    // HOME is not set, and the uid has no account.
  }
  if (isAbsolute(home)) return home
  throw new Failure(
    'failed',
    'there is no home folder for the keys of hosts and the tokens; set HOME, or XDG_CONFIG_HOME, to an absolute path',
  )
}

/** Reads a JSON file of ours; `undefined` when it does not exist. */
export function readPrivate(path: string): unknown {
  let text: string
  try {
    text = readRegularFileSync(path, textFileBytes).bytes.toString()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw refused(path, 'read', error)
  }
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new Failure('failed', `${path} is damaged; remove it and try again`, { cause: error })
  }
}

/** Replaces a JSON file (0600) atomically, in a folder that only its owner may open (0700). */
export function writePrivate(path: string, value: unknown): void {
  makePrivateFolder(dirname(dirname(path)))
  makePrivateFolder(dirname(path))
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`
  try {
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw refused(path, 'written', error)
  }
}

/** @returns whether the file existed */
export function removePrivate(path: string): boolean {
  try {
    rmSync(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw refused(path, 'removed', error)
  }
}

/**
 * Creates a folder that only this user may open, if it is missing, and checks that files can be created in it.
 * @throws Failure that names the path and the reason
 */
function makePrivateFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o700)
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw refused(path, 'written', error)
  }
}

/** @param what the operation that failed, for example `read` */
const refused = (path: string, what: string, error: unknown): Failure =>
  new Failure('failed', `${path} cannot be ${what}: ${systemReason(error as NodeJS.ErrnoException)}`, {
    cause: error,
  })

const defaultTimeoutMs = 30_000

/** The wait for a lock. */
interface LockWait {
  /** Milliseconds; 30 seconds where it is not given. */
  readonly timeoutMs?: number
  /** Says that another process still has the lock. */
  readonly held?: string
}

/**
 * Runs work that two invocations must not run at once. The lock is SQLite's on an empty file, since Node has no
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
