/**
 * Whether an SQLite error means that nothing can be written now: disk full, write error, read-only file system, locked
 * by another process. Primary result codes of https://www.sqlite.org/rescode.html
 */
export function isUnwritable(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode
  return code !== undefined && unwritable.has(code & 0xff)
}

/** Whether an error comes from the database, also from a closed one. */
export const isDatabaseError = (error: unknown): boolean => {
  const { code, errcode } = error as { code?: string; errcode?: number }
  return errcode !== undefined || code === 'ERR_INVALID_STATE'
}

// SQLITE_PERM, BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN
const unwritable = new Set([3, 5, 6, 8, 10, 13, 14])
