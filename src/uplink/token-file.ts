import { unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemReason } from '../errors/system-reason.ts'
import { syncFolder } from '../system/files.ts'
import { readRegularFile } from '../system/regular-file.ts'
import type { Logger } from '../system/log.ts'

/** The file of the registration token, which is there until the host is registered. */
export interface TokenFile {
  /** The token; undefined where there is no file, or none that can be read. */
  readToken(): Promise<string | undefined>
  removeToken(): Promise<void>
}

// Far longer than a token.
const mostBytes = 4_096

export function createTokenFile(path: string | undefined, log: Logger): TokenFile {
  let hasWarned = false
  const warn = (error: unknown, what: string) => {
    if (!hasWarned)
      log.warn(
        { file: path, reason: systemReason(error as NodeJS.ErrnoException) },
        `the file of the registration token ${what}`,
      )
    hasWarned = true
  }
  return {
    async readToken() {
      if (path === undefined) return undefined
      try {
        const token = (await readRegularFile(path, mostBytes)).bytes.toString().trim()
        return token === '' ? undefined : token
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          warn(error, 'cannot be read; connect again: edgehostctl platform connect')
        return undefined
      }
    },
    async removeToken() {
      if (path === undefined) return
      try {
        await unlink(path)
        await syncFolder(dirname(path))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          warn(error, 'cannot be removed by the daemon; remove it, since others may register hosts with it')
      }
    },
  }
}
