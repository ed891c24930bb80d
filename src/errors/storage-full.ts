import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

/** The error for a full disk, with `missingBytes` if known. */
export const storageFull = (missingBytes?: number, cause?: unknown) =>
  new AppError(
    generalErrors.StorageFull,
    missingBytes === undefined
      ? 'the disk is full; make room (see: df) and try again'
      : `the disk lacks ${missingBytes} bytes for this file and the reserve that stays free; make room and send it again`,
    { ...(missingBytes === undefined ? {} : { details: { missingBytes } }), cause },
  )

/** The error for a file system that has space left, but no inodes. */
export const noInodes = () =>
  new AppError(
    generalErrors.StorageFull,
    'the file system of the state folder has almost no inodes left (see: df -i); remove files and send it again',
  )

/** @throws AppError StorageFull for a full disk or an exceeded quota; any other error is thrown unchanged */
export function refuseFull(error: unknown): never {
  const { code } = error as NodeJS.ErrnoException
  throw code === 'ENOSPC' || code === 'EDQUOT' ? storageFull(undefined, error) : error
}
