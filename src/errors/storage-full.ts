import { escapeInvisible } from '../base/printable.ts'
import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

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

/** Whether a call of the system failed since the disk is full or a quota exceeded. */
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
