import type { Logger } from '../system/log.ts'
import { hex, type AuditHead, type AuditRecord, chainRecord, isSameHead, type AuditEntry } from './record.ts'
import { seeDisk } from '../errors/advice.ts'
import type { Database } from '../store/database.ts'
import { isDatabaseError } from '../store/unwritable.ts'
import type { Clock } from '../system/clock.ts'
import type { HeadFile } from './head-file.ts'
import { forkEntry, gapEntry, lossEntry } from './own-entries.ts'
import type { TrailStore } from './trail-store.ts'
import { uuidAt } from '../base/uid.ts'

/** Copies the trail to the journal, for a site that ships its logs. */
interface JournalCopy {
  /** Writes a record that is on the disk. */
  write(record: AuditRecord): void
  /** Writes a record that is only in the journal: it has no place in the chain. */
  writeAlone(record: AuditRecord): void
  /** Writes the head. An attacker who can alter the trail may not be able to alter the journal. */
  writeHead(head: AuditHead): void
}

function createJournalCopy(log: Logger): JournalCopy {
  // Independent of the log level, since a site may ship these lines. Not redacted: the trail has no secrets, and a
  // search for them takes as long as writing the line.
  const lines = log.child({}, { level: 'info', redact: [] })

  return {
    write: (record) => lines.info(lineOf(record), record.message),
    writeAlone: (record) => lines.info({ ...lineOf(record), seq: null, hash: null }, record.message),
    writeHead: (head) => lines.info({ kind: 'audit-head', ...jsonOf(head) }, 'audit head'),
  }
}

/** A head in the format of the journal and its readers. */
const jsonOf = ({ seq, hash }: AuditHead) => ({ seq, hash: hex(hash) })

function lineOf(record: AuditRecord) {
  const { seq, uid, hash, actorType, actor, role, address, action, kind, outcome, status, requestId } = record
  return {
    kind: 'audit',
    seq,
    uid,
    at: new Date(record.at).toISOString(),
    hash: hex(hash),
    actorType,
    actor,
    role,
    address,
    action,
    outcome,
    status,
    ref: requestId,
    ...(record.actorUid && { actorUid: record.actorUid }),
    ...(record.projectUid && { projectUid: record.projectUid }),
    resource: { kind, name: record.resourceName, uid: record.resourceUid },
  }
}

/** An entry that is to become a record. */
export interface Pending {
  /** Undefined where another record counts it: then only its intent is removed. */
  readonly entry: AuditEntry | undefined
  readonly uid: string
  /** Whether it has an intent on the disk. */
  readonly isIntent: boolean
}

/** The audit trail: a chain of records that only grows. */
export interface Trail {
  /**
   * Records an event. If it cannot be written, it goes to the journal only and is counted, and a later record reports
   * that once the disk can be written again.
   * @param uid uid of the record, if it was returned to a client already; see `newUid`
   * @param also called within the same transaction
   * @returns the uid of the record, written or not
   */
  append(entry: AuditEntry, uid?: string, also?: (record: AuditRecord) => void): string
  /**
   * Writes the intent of a change to the disk, before the change is made. A record always follows: from `finish`, or with the
   * outcome `unknown` after the next start.
   * @returns the uid of the future record; undefined when the disk cannot be written
   */
  begin(entry: AuditEntry): string | undefined
  /** Records the outcome of a started change. */
  finish(uid: string, entry: AuditEntry): void
  /** Writes any number of records, whose uids were returned already, in one commit; each like `append` or `finish`. */
  writeAll(all: readonly Pending[]): void
  newUid(): string
  /** The newest written record; kept in memory, so that a truncated trail is detected. */
  head(): AuditHead
  /** Number of records since the start that are only in the journal. */
  unwritten(): number
  /** Whether the database lacked records at the start that were on the disk. */
  readonly isLost: boolean
  /** Time of the newest record at the start, by which the database is known to have all commits; -Infinity where they are lost, or no head was beside it. */
  readonly completeUntil: number
  /** Writes the head to the journal, which an attacker may not be able to alter. */
  announceHead(): void
}

interface TrailOptions {
  readonly store: TrailStore
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  /** The head beside the database; absent where that is in memory. */
  readonly headFile?: HeadFile
}

/** Opens the trail. Changes that a killed daemon had started become records with the outcome `unknown`. */
export function createTrail({ store, database, clock, log, headFile }: TrailOptions): Trail {
  const journal = createJournalCopy(log)
  const { sql, transaction } = database
  let head = store.head()
  // After an error the content of the disk is unknown.
  let isHeadSure = true
  let unwritten = 0
  // Since when nothing can be written, and how many records are missing.
  let missing = 0
  let missingSince = 0
  // Changes that have ended but could not be recorded yet. Each has its intent on the disk.
  const unrecorded = new Map<string, AuditEntry | undefined>()

  /** Writes records and removes their intents in one commit; both are on the disk when it returns. */
  function write(pending: readonly Pending[], also?: (record: AuditRecord) => void): boolean {
    const late = [...unrecorded].slice(0, lateAtOnce)
    const made: AuditRecord[] = []
    let found = head
    try {
      // A rollback of an outer transaction would make the head wrong.
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
          store.put(record)
          made.push(record)
          last = record
        }
        const newest = made.at(-1)
        if (also && newest) also(newest)
      })
    } catch (error) {
      // The change is done and must not become a 500 or end the process, whatever the database error is.
      if (!isDatabaseError(error)) throw error
      isHeadSure = false
      complain(error)
      return false
    }
    if (!isSameHead(found, head))
      log.error({ expected: jsonOf(head), found: jsonOf(found) }, 'another program changed the audit trail')
    isHeadSure = true
    const newest = made.at(-1)
    if (newest) {
      head = { seq: newest.seq, hash: newest.hash }
      headFile?.write(head)
    }
    for (const [uid] of late) unrecorded.delete(uid)
    if (missing > 0) log.info({ missing }, 'the audit trail can be written again')
    missing = 0
    isBroken = false
    made.forEach(journal.write)
    return true
  }

  // Logged once, not for each of a thousand requests; the records themselves are still logged.
  let isBroken = false
  function complain(error: unknown): void {
    if (!isBroken)
      log.error(
        { err: error },
        `the audit trail cannot be written; further records are in the journal only; ${seeDisk}`,
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

  const last = headFile?.last
  const newestAt = store.read(head.seq)?.at ?? -Infinity
  const atLast = last && store.read(last.seq)
  // Records that retention has removed cannot be compared.
  const isLost =
    last !== undefined && (last.seq > head.seq || (atLast !== undefined && !isSameHead(atLast, last)))
  if (isLost) {
    const entry = lossEntry(last, head)
    log.error(
      { expected: jsonOf(last), found: jsonOf(head) },
      `${entry.message}; check the disk with dmesg --level=err`,
    )
    write([{ entry, uid: newUid(), isIntent: false }])
    headFile?.sync()
  } else if (headFile?.isNew === true && head.seq > 0) {
    log.info(
      { found: jsonOf(head) },
      'the head of the audit trail was not beside the database, as after a restore or on an upgrade; whether the database has lost its last commits is not known: compare it with the last one in the journal (journalctl -g audit-head)',
    )
  }

  const started = store.intents()
  for (const { uid, entry } of started) unrecorded.set(uid, { ...entry, outcome: 'unknown', status: null })
  if (started.length > 0) write([])

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
    isLost,
    completeUntil: last !== undefined && !isLost ? newestAt : -Infinity,
    head: () => head,
    unwritten: () => unwritten,
    announceHead: () => journal.writeHead(head),
  }
}

// Each one adds to the time for which a commit blocks the event loop.
const lateAtOnce = 20
