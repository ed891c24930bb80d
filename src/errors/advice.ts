// An error that ends a start and that an operator can repair is a `StartError`: one line with the problem and the command that helps, no stack.
// `errors/advice.ts` turns errors of the system at the start into one. Log lines about problems that an operator can solve also end with a command.
// The text of the console (`service/console.ts`) is on the disk before systemd is notified of the start, so that an
// installation can print it.

import { program } from '../base/program.ts'
import { StartError } from './start-error.ts'

/** Advice when nothing can be written; used at the end of a message. */
export const seeDisk = 'see what is full or read-only with: df -h; findmnt -O ro'

// Error codes of open(2), mkdir(2), rename(2), FileRefused of system/regular-file.ts; SQLite's primary result codes, https://www.sqlite.org/rescode.html
const inTheWay = ['EEXIST', 'EISDIR', 'ELOOP']
const unwritable = ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO']
const sqliteUnwritable = [8, 10, 13]
const sqliteBusy = [5, 6]
const sqliteDamaged = [11, 26]
const sqliteCannotOpen = 14

/**
 * Advises the operator on a system error that stopped the start.
 * @param stateDirectory folder of the daemon's files
 * @returns undefined when there is no advice
 */
export function adviseOnStart(error: unknown, stateDirectory: string): StartError | undefined {
  const { code = '', path, message, errcode } = error as NodeJS.ErrnoException & { errcode?: number }
  const place = path ?? stateDirectory
  const because = (advice: string) =>
    new StartError(`the daemon could not start, ${message}: ${advice}`, { cause: error })
  if (code === 'FileRefused') return because(`look at it with ls -lL ${place}, and move it away`)
  // ls -L prints nothing useful for a dangling link.
  if (inTheWay.includes(code)) return because(`look at it with ls -ld ${place}, and move it away`)
  const sqlite = errcode === undefined ? undefined : errcode & 0xff
  if (unwritable.includes(code) || (sqlite !== undefined && sqliteUnwritable.includes(sqlite)))
    return because(seeDisk)
  if (code === 'EACCES' || code === 'EPERM' || sqlite === sqliteCannotOpen)
    return because(
      `start it as root with systemctl start ${program.daemon}, and see who owns the path with namei -l ${place}`,
    )
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return because(`see which part of the path is missing with namei -l ${place}`)
  if (sqlite !== undefined && sqliteBusy.includes(sqlite))
    return because(
      `another process has the database, find it with fuser -v ${stateDirectory}/${program.folder}.db`,
    )
  if (sqlite !== undefined && sqliteDamaged.includes(sqlite))
    return because(
      `the database is damaged; the next start checks all of it, and systemd starts it again; check the disk with dmesg --level=err`,
    )
  return undefined
}
