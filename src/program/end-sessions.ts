import { lstat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { lockState, StateInUse } from '../store/state-lock.ts'
import { syncFolder } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import { secretFile } from '../secrets/secret-file.ts'

/** What came of it. */
export interface SessionsEnded {
  /** Whether there was a secret; without one every session has ended already. */
  readonly wasThere: boolean
  /** Whether a daemon runs, which still uses the secret that it has read. */
  readonly isRunning: boolean
}

/**
 * Ends every session of a state folder, also those that a restored database would bring back: removes the secret that
 * all tokens depend on. The next start makes another one. On return that is on the disk.
 * @throws the system's errors as they are, for example `EACCES`
 */
export async function endSessions(stateDirectory: string, log: Logger): Promise<SessionsEnded> {
  await lstat(stateDirectory)
  const wasThere = await unlink(join(stateDirectory, secretFile)).then(() => true, missing)
  await syncFolder(stateDirectory)
  // Afterwards: a daemon that starts in between has made a new one.
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
