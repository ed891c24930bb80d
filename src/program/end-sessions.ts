import { lstat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { lockState, StateInUse } from '../store/state-lock.ts'
import { replaceFile, syncFolder } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import { endedSecretFile, secretFile } from '../secrets/secret-file.ts'

/**
 * Ends this process with an exit code, even if its threads are blocked. `process.exit()` waits for them: a thread that
 * hangs in a disk read or in an SQLite query would keep the process alive until systemd kills it. execve(2) ends all
 * threads at once. No code of this program runs after it, so the `exit` listeners run before.
 */
export function endProcess(exitCode: number): never {
  process.on('exit', () => {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${exitCode}`], {})
  })
  process.exit(exitCode)
}

/** The result of `endSessions`. */
export interface SessionsEnded {
  /** Whether there was a secret; without one, no session is valid anyway. */
  readonly wasThere: boolean
  /** Whether a daemon is running; it still uses the secret that it has read. */
  readonly isRunning: boolean
}

/**
 * Ends every session of a state folder, also sessions that a restored database would bring back: it removes the secret
 * that all tokens depend on. The next start creates a new one. The removal is on the disk when the promise resolves.
 * @throws system errors unchanged, for example `EACCES`
 */
export async function endSessions(stateDirectory: string, log: Logger): Promise<SessionsEnded> {
  await lstat(stateDirectory)
  // A platform starts without its secret only with this file.
  await replaceFile(join(stateDirectory, endedSecretFile), '', 0o600)
  const wasThere = await unlink(join(stateDirectory, secretFile)).then(() => true, missing)
  await syncFolder(stateDirectory)
  // Checked afterwards: a daemon that started in between has created a new secret.
  return { wasThere, isRunning: isLocked(stateDirectory, log) }
}

function isLocked(stateDirectory: string, log: Logger): boolean {
  try {
    lockState(stateDirectory, log).release()
    return false
  } catch (error) {
    if (error instanceof StateInUse) return true
    throw error
  }
}

function missing(error: NodeJS.ErrnoException): false {
  if (error.code !== 'ENOENT') throw error
  return false
}
