import { getSystemErrorMessage } from 'node:util'

/** Why a system call failed, in the words of strerror(3): `no space left on device (ENOSPC)`. */
export function systemReason({ errno, code, message }: NodeJS.ErrnoException): string {
  return errno === undefined || code === undefined ? message : `${getSystemErrorMessage(errno)} (${code})`
}
