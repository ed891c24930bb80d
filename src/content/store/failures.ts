import { AppError } from '../../errors/app-error.ts'
import { StartError } from '../../errors/start-error.ts'
import { isFull, refuseFull, storageFull } from '../../errors/storage-full.ts'
import type { Logger } from '../../system/log.ts'
import { contentErrors } from '../codes.ts'

// Primary result code of https://www.sqlite.org/rescode.html
const sqliteFull = 13

/**
 * For `catch` around work on the store: what a client may read of an error of the file system or of SQLite, which is logged.
 * @throws AppError StorageFull, ContentUnavailable, or the error itself if it is an AppError
 */
export function unavailable(log: Logger, root: string) {
  return (error: unknown): never => {
    if (error instanceof AppError) throw error
    const { errcode } = error as { readonly errcode?: number }
    if (errcode !== undefined && (errcode & 0xff) === sqliteFull) throw storageFull(undefined, error)
    if (isFull(error)) refuseFull(error)
    log.error(
      { err: error, folder: root },
      error instanceof StartError
        ? `the content cannot be used: ${error.message}`
        : `the content cannot be read or written; see: findmnt -T ${root}; df ${root}; dmesg --level=err`,
    )
    throw new AppError(
      contentErrors.ContentUnavailable,
      'the content of this host cannot be read or written; the journal of the host says why',
      { cause: error, retryAfterSec: 30 },
    )
  }
}
