import type { StartError } from './start-error.ts'
import { getSystemErrorMessage } from 'node:util'
import { escapeInvisible } from '../base/printable.ts'
import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

/** Whether a file could not be read because only root may read it, and this process is not root. */
export const isForRoot = ({ cause }: Pick<StartError, 'cause'>): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'EACCES' && process.geteuid?.() !== 0

/** Cause of a failed system call, in the words of strerror(3): `no space left on device (ENOSPC)`. */
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

/** The error for a full disk, with `missingBytes` if known, and the file that could not be written where the system names it. */
export function storageFull(missingBytes?: number, cause?: unknown, file = fileOf(cause)): AppError {
  const disk = file === undefined ? 'the disk' : `the disk of ${escapeInvisible(file)}`
  return new AppError(
    generalErrors.StorageFull,
    missingBytes === undefined
      ? `${disk} is full; make room (see: df) and try again`
      : `${disk} lacks ${missingBytes} bytes for this file and the reserve that stays free; make room and send it again`,
    { ...(missingBytes === undefined ? {} : { details: { missingBytes } }), cause },
  )
}

const fileOf = (cause: unknown): string | undefined => {
  const { path } = { ...(cause as { readonly path?: unknown } | undefined) }
  return typeof path === 'string' ? path : undefined
}

/** The error for a file system that has space left, but no inodes. */
export const noInodes = () =>
  new AppError(
    generalErrors.StorageFull,
    'the file system of the state folder has almost no inodes left (see: df -i); remove files and send it again',
  )

/** Whether a system call failed because the disk is full or a quota exceeded. */
export const isFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')

/** @throws AppError StorageFull for a full disk or an exceeded quota; any other error is thrown unchanged */
export function refuseFull(error: unknown, file = fileOf(error)): never {
  throw isFull(error) ? storageFull(undefined, error, file) : error
}

/** The same for writes to an open file, of which the system names no path. @param file its path */
export const refuseFullOf =
  (file: string) =>
  (error: unknown): never =>
    refuseFull(error, file)
