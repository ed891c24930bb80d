import { getSystemErrorMessage } from 'node:util'

/** Why a system call failed, as strerror(3) says it: `no space left on device (ENOSPC)`. */
export function systemReason({ errno, code, message }: NodeJS.ErrnoException): string {
  return errno === undefined || code === undefined ? message : `${getSystemErrorMessage(errno)} (${code})`
}
