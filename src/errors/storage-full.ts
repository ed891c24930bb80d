import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

/** What is refused where there is no room; `missingBytes` where that is known. */
export const storageFull = (missingBytes?: number, cause?: unknown) =>
  new AppError(
    generalErrors.StorageFull,
    missingBytes === undefined
      ? 'the disk is full; make room (see: df) and try again'
      : `the disk lacks ${missingBytes} bytes for this file and the reserve of the host; make room and send it again`,
    { ...(missingBytes === undefined ? {} : { details: { missingBytes } }), cause },
  )

/** The same where there is room, but not for one more file. */
export const noInodes = () =>
  new AppError(
    generalErrors.StorageFull,
    'the file system of the state folder has hardly an inode left (see: df -i); remove files and send it again',
  )

/** @throws AppError StorageFull for an error of a full disk or quota; any other as it is */
export function refuseFull(error: unknown): never {
  const { code } = error as NodeJS.ErrnoException
  throw code === 'ENOSPC' || code === 'EDQUOT' ? storageFull(undefined, error) : error
}
