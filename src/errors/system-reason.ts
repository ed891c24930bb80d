import { getSystemErrorMessage } from 'node:util'

/** Why a system call failed, in the words of strerror(3): `no space left on device (ENOSPC)`. */
export function systemReason({ errno, code, message }: NodeJS.ErrnoException): string {
  return errno === undefined || code === undefined ? message : `${getSystemErrorMessage(errno)} (${code})`
}

/** Adds the path to an error of a write to an open file, of which the system names no path; any other error is thrown unchanged. */
export const withFile =
  (file: string) =>
  (error: unknown): never => {
    const { errno, code, path } = error as NodeJS.ErrnoException
    if (errno === undefined || path !== undefined) throw error
    const reason = systemReason(error as NodeJS.ErrnoException)
    const named = new Error(`${file} could not be written: ${reason}`, { cause: error })
    throw Object.assign(named, { code, path: file })
  }
