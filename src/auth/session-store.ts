import { closeSync, fsyncSync, readFileSync, writeSync } from 'node:fs'
import type { HostRole } from '../base/role.ts'
import { createColumns } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { openInPlace } from '../system/files.ts'

/** A stored session. Times are milliseconds since 1970. */
export interface SessionRecord {
  readonly uid: string
  readonly userName: string
  readonly role: HostRole
  /** Whether the local files or only a directory had the account, and made it admin, at the login or last renewal. */
  readonly accountSource: 'local' | 'directory'
  readonly roleSource: 'local' | 'directory'
  /** Address of the login. */
  readonly address: string
  readonly createdAt: number
  /** Time of the last renewal, or of the login. */
  readonly renewedAt: number
  readonly expiresAt: number
  /** Mark of the account at login; see `Account`. */
  readonly accountMark: string
  /** SHA-256 of the current refresh token. */
  readonly refreshHash: string
  /** SHA-256 of the previous one. */
  readonly previousHash: string | null
  /** Number of renewals. */
  readonly generation: number
}

/** Sessions on disk. */
export interface SessionStore {
  list(): SessionRecord[]
  /** A kill does not lose it. A power cut does, until the next sync, which comes with the audit record of the request. */
  put(record: SessionRecord): void
  /** On the disk when it returns; takes the mark away. */
  remove(uids: readonly string[]): void
  /** Whether sessions that had ended could not be removed. */
  isMarked(): boolean
  /** @returns whether the mark is on the disk */
  mark(): boolean
}

/** In the state folder: whether sessions that have ended are still in the database. */
export const endMarkFile = 'session-ends'
// Of one length: written in place, which a disk without any space admits.
const marks = { none: '0\n', set: '1\n' } as const

const columns = createColumns<keyof SessionRecord>({
  uid: 'uid',
  userName: 'user_name',
  role: 'role',
  accountSource: 'account_source',
  roleSource: 'role_source',
  address: 'address',
  createdAt: 'created_at',
  renewedAt: 'renewed_at',
  expiresAt: 'expires_at',
  accountMark: 'account_mark',
  refreshHash: 'refresh_hash',
  previousHash: 'previous_hash',
  generation: 'generation',
})

/** @param markFile without one there is no mark, as with a database in memory */
export function createSessionStore(database: Database, markFile?: string): SessionStore {
  const list = database.sql.prepare(`SELECT ${columns.selected()} FROM session`)
  const put = database.sql.prepare(`INSERT OR REPLACE INTO session ${columns.inserted}`)
  const remove = database.sql.prepare('DELETE FROM session WHERE uid = ?')
  let isMarked = markFile !== undefined && readMark(markFile)
  return {
    isMarked: () => isMarked,
    mark: () => (isMarked ||= markFile !== undefined && writeMark(markFile, marks.set)),
    list: () => list.all() as unknown as SessionRecord[],
    put: (record) => database.transactionBeforeNext(() => void put.run(...columns.valuesOf(record))),
    remove(uids) {
      database.transaction(() => uids.forEach((uid) => remove.run(uid)))
      if (isMarked && markFile !== undefined) isMarked = !writeMark(markFile, marks.none)
    },
  }
}

/** Reads the mark, and makes the file where it is missing, so that its place on the disk is there later. */
const readMark = (file: string): boolean =>
  withMark(file, (descriptor) => {
    const text = readFileSync(descriptor, 'latin1')
    if (text === '') write(descriptor, marks.none)
    return text === marks.set
  })

/** @returns whether it is on the disk */
const writeMark = (file: string, text: string): boolean =>
  withMark(file, (descriptor) => {
    write(descriptor, text)
    return true
  })

function write(descriptor: number, text: string): void {
  writeSync(descriptor, text, 0)
  fsyncSync(descriptor)
}

/** @returns the result of the work; false where the file cannot be used */
function withMark(file: string, work: (descriptor: number) => boolean): boolean {
  try {
    const descriptor = openInPlace(file)
    try {
      return work(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return false
  }
}
