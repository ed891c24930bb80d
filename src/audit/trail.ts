import { seeDisk } from '../errors/advice.ts'
import type { Database } from '../store/database.ts'
import { isDatabaseError } from '../store/unwritable.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { createJournalCopy, jsonOf } from './journal-copy.ts'
import { forkEntry, gapEntry } from './own-entries.ts'
import { chainRecord, isSameHead, type AuditEntry, type AuditHead, type AuditRecord } from './record.ts'
import type { TrailStore } from './trail-store.ts'
import { uuidAt } from '../base/uid.ts'

/** What is to become a record. */
export interface Pending {
  /** Nothing where another record counts it: then only its intent is removed. */
  readonly entry: AuditEntry | undefined
  readonly uid: string
  /** Whether there is an intent of it on the disk. */
  readonly isIntent: boolean
}

/** Who did what, when: a chain of records that only grows. */
export interface Trail {
  /**
   * Records what happened. Where it cannot be written, the journal alone has it, it is counted, and a record says so
   * once there is room again.
   * @param uid of the record, if it was given away already; see `newUid`
   * @param also is written in the same transaction
   * @returns the uid of the record, written or not
   */
  append(entry: AuditEntry, uid?: string, also?: (record: AuditRecord) => void): string
  /**
   * Notes on the disk that something is about to be changed. Whatever happens then, a record comes of it: by `finish`,
   * or as `unknown` after the next start.
   * @returns the uid that the record will have; nothing where the disk cannot be written
   */
  begin(entry: AuditEntry): string | undefined
  /** Records what came of what was begun. */
  finish(uid: string, entry: AuditEntry): void
  /** Any number of records, whose uids were given away already, in one commit; each as `append` or `finish`. */
  writeAll(all: readonly Pending[]): void
  newUid(): string
  /** Of what was recorded; kept in memory, so that an end that was cut off shows. */
  head(): AuditHead
  /** Records that only the journal has, since the start. */
  unwritten(): number
  /** Writes the head to the journal, which an attacker may not be able to alter. */
  announceHead(): void
}

export interface TrailOptions {
  readonly store: TrailStore
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
}

/** Opens the trail. Changes that were begun before the daemon was killed become records whose outcome is not known. */
export function createTrail({ store, database, clock, log }: TrailOptions): Trail {
  const journal = createJournalCopy(log)
  const { sql, transaction } = database
  let head = store.head()
  // After an error it is unknown what the disk holds.
  let isHeadSure = true
  let unwritten = 0
  // Since when, while nothing can be written.
  let missing = 0
  let missingSince = 0
  // What was begun, is over, and could not be recorded yet. Each has its intent on the disk.
  const unrecorded = new Map<string, AuditEntry | undefined>()

  /** Records are on the disk when it returns, and their intents are gone with the same commit. */
  function write(pending: readonly Pending[], also?: (record: AuditRecord) => void): boolean {
    const late = [...unrecorded].slice(0, lateAtOnce)
    const made: AuditRecord[] = []
    let found = head
    try {
      // Rolled back with the rest of it, the head would be a lie.
      if (sql.isTransaction) throw new Error('a record is written in a transaction of its own')
      transaction(() => {
        if (!isHeadSure) found = store.head()
        const own = [
          ...(isSameHead(found, head) ? [] : [forkEntry(head, found)]),
          ...(missing > 0 ? [gapEntry(missing, missingSince)] : []),
        ]
        const all: Pending[] = [
          ...own.map((entry) => ({ entry, uid: newUid(), isIntent: false })),
          ...late.map(([uid, entry]) => ({ uid, entry, isIntent: true })),
          ...pending,
        ]
        let last = found
        for (const { entry, uid, isIntent } of all) {
          if (isIntent) store.removeIntent(uid)
          if (!entry) continue
          const record = chainRecord(last, entry, uid, clock.now())
          store.insert(record)
          made.push(record)
          last = record
        }
        const newest = made.at(-1)
        if (also && newest) also(newest)
      })
    } catch (error) {
      // Whatever it is: what was done is done, and must not become a 500 or the end of the process.
      if (!isDatabaseError(error)) throw error
      isHeadSure = false
      complain(error)
      return false
    }
    if (!isSameHead(found, head))
      log.error({ expected: jsonOf(head), found: jsonOf(found) }, 'another program changed the audit trail')
    isHeadSure = true
    const newest = made.at(-1)
    if (newest) head = { seq: newest.seq, hash: newest.hash }
    for (const [uid] of late) unrecorded.delete(uid)
    if (missing > 0) log.info({ missing }, 'the audit trail can be written again')
    missing = 0
    isBroken = false
    made.forEach(journal.write)
    return true
  }

  // Once, not for each of a thousand requests; the lines themselves are still written.
  let isBroken = false
  function complain(error: unknown): void {
    if (!isBroken)
      log.error(
        { err: error },
        `the audit trail cannot be written; the journal alone has what follows; ${seeDisk}`,
      )
    isBroken = true
  }

  function miss({ entry, uid, isIntent }: Pending): void {
    if (isIntent) unrecorded.set(uid, entry)
    else {
      if (missing === 0) missingSince = clock.now()
      missing += 1
      unwritten += 1
    }
    if (entry) journal.writeAlone(chainRecord(head, entry, uid, clock.now()))
  }

  function writeOrMiss(pending: readonly Pending[], also?: (record: AuditRecord) => void): void {
    if (!write(pending, also)) pending.forEach(miss)
  }

  const newUid = () => uuidAt(clock.now())

  const begun = store.intents()
  for (const { uid, entry } of begun) unrecorded.set(uid, { ...entry, outcome: 'unknown', status: null })
  if (begun.length > 0) write([])

  return {
    append(entry, uid = newUid(), also) {
      writeOrMiss([{ entry, uid, isIntent: false }], also)
      return uid
    },

    begin(entry) {
      const uid = newUid()
      try {
        transaction(() => store.putIntent({ uid, entry }))
        return uid
      } catch (error) {
        if (!isDatabaseError(error)) throw error
        complain(error)
        return undefined
      }
    },

    finish: (uid, entry) => writeOrMiss([{ entry, uid, isIntent: true }]),
    writeAll: (all) => writeOrMiss(all),
    newUid,
    head: () => head,
    unwritten: () => unwritten,
    announceHead: () => journal.writeHead(head),
  }
}

// Each takes its share of the time that a commit holds the event loop.
const lateAtOnce = 20
