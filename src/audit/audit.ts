// A route declares the content of its audit records in `config.audit`; a test fails for a route that changes something and does not. Its
// `changes` gives the resource before and after: `base/described-change.ts` says what differs. A request that only tries (`isTrial`) has neither
// intent nor record. `api/audit-hook.ts` gives such a route two hooks. The last one before the handler commits an intent; if it cannot, it answers
// 507 and nothing is changed. `onSend` has the record written and names it in the header `AuditUid` (ADR 8). Refusals beyond a budget share one
// record a minute, and so do their lines in the journal (`audit/flood.ts`, ADR 18). The records of all requests that end in one turn of the event
// loop are one commit (`audit/request-audit.ts`), and their replies wait for it. The intent of a login is committed while PAM checks the password.
// Reads have no hook and cost nothing. `audit/trail.ts` chains the records: each contains the SHA-256 of the one before. Records of the platform
// also have the uids of the user and of the project (`canonicalForm`, version 2). Triggers keep the daemon itself from altering or removing a
// record; retention first writes a checkpoint into the chain. The daemon records its own actions with the actor `system`, never inside another
// transaction, which could be rolled back.

import { Readable } from 'node:stream'
import { setImmediate as breathe } from 'node:timers/promises'
import { tarEnd, tarHeader, tarPadding } from '../archive/ustar.ts'
import { hex, type AuditRecord, type AuditAction } from './record.ts'
import { type TrailStore, createTrailStore } from './trail-store.ts'
import { join } from 'node:path'
import { createLock } from '../base/lock.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import type { FiguresOf, Room } from '../root/room.ts'
import { headName } from '../store/database-name.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { about } from './about.ts'
import type { AuditAccess } from './access.ts'
import type { RequestAudit } from '../api/audit-hook.ts'
import { createBatch, createRequestAudit } from './request-audit.ts'
import type { RetentionLimits } from './config.ts'
import { createFlood } from './flood.ts'
import { openHeadFile } from './head-file.ts'
import { beginEntry, lossMark, systemEntry, type SystemEntry } from './own-entries.ts'
import { createAgeClock, retain } from './retention.ts'
import { auditRoutes } from './routes.ts'
import { countOf, createSearch, type SearchOptions } from './search.ts'
import { createTrail } from './trail.ts'
import { verifyTrail } from './verification.ts'

// The size of a member precedes its content: this many records are held in memory at a time.
const memberLength = 1_000
// Read and serialized in a millisecond, so that a small board needs less than ten.
const sliceLength = 25

/**
 * The whole trail, oldest first, as a tar archive of NDJSON files. It is created while it is read: a slow client costs
 * the memory of one slice and no file. Each line has both hashes, so that the chain can be verified without this host.
 * @param head number of the newest record to include
 */
export function downloadTrail(store: TrailStore, head: number): Readable {
  return Readable.from(members(store, head), { objectMode: false })
}

async function* members(store: TrailStore, head: number): AsyncGenerator<Buffer> {
  for (let next = store.first(); next <= head;) {
    const { oldest, newest, content } = await readMember(store, next, head)
    if (!oldest || !newest) break
    yield tarHeader(`audit/${number(oldest.seq)}-${number(newest.seq)}.ndjson`, content.length, newest.at)
    yield content
    yield tarPadding(content.length)
    next = newest.seq + 1
  }
  yield tarEnd()
}

async function readMember(store: TrailStore, from: number, head: number) {
  const lines: Buffer[] = []
  let oldest: AuditRecord | undefined
  let newest: AuditRecord | undefined
  for (let count = 0; count < memberLength; count += sliceLength) {
    const records = store.slice((newest?.seq ?? from - 1) + 1, sliceLength).filter(({ seq }) => seq <= head)
    oldest ??= records[0]
    newest = records.at(-1) ?? newest
    lines.push(Buffer.from(records.map((record) => `${JSON.stringify(lineOf(record))}\n`).join('')))
    if (records.length < sliceLength) break
    await breathe()
  }
  return { oldest, newest, content: Buffer.concat(lines) }
}

// Padded, so that the order by name is the order by time.
const number = (seq: number) => String(seq).padStart(10, '0')

const lineOf = ({ previousHash, hash, at, actorUid, projectUid, ...record }: AuditRecord) => ({
  ...record,
  // Of the platform only; a line of a host is as it always was.
  ...(actorUid && { actorUid }),
  ...(projectUid && { projectUid }),
  at: new Date(at).toISOString(),
  previousHash: hex(previousHash),
  hash: hex(hash),
})

interface AuditOptions {
  readonly settings: RetentionLimits
  readonly database: Database
  /** The state folder, where the head of the trail is beside the database; absent for a database in memory. */
  readonly stateDirectory?: string
  /** Identifies this host in each record of a list. */
  readonly edgeHostId: string
  readonly listTokens: ContinueTokens
  /** The text of the record for a start of the daemon. */
  readonly startMessage: string
  /** Reads outside the event loop. */
  readonly read: SearchOptions['read']
  readonly clock: Clock
  readonly log: Logger
  /**
   * Called for each record of a refused caller without a session; the journal copy of the record is the log line for
   * it.
   */
  readonly onAnonymous?: () => void
}

export type { SystemEntry }

/** The room of the audit trail. */
export interface Audit extends Room {
  /** Used by the HTTPS edge. */
  readonly requests: RequestAudit
  /** Read access for administrators. */
  readonly access: AuditAccess
  /** Number of records. */
  count(): number
  /** Records an action of the daemon itself. */
  record(entry: SystemEntry): void
  /** The resource in the newest record of a kind and action. */
  lastResource(kind: string, action: AuditAction): string | undefined
  /** Number of records since the start that are only in the journal. */
  unwritten(): number
  /** See `Trail`: only files that are not newer and that no row names may be removed. */
  readonly completeUntil: number
  /** Writes the head to the journal, and removes records that are too old or too many; call it hourly. */
  enforceRetention(): Promise<void>
  /** Writes all waiting records and sums. */
  flush(): void
}

// After so many records, some hundred KiB, the size of the trail is compared with its limit.
const comparedAfter = 500

/** Actions of records of another secret: made by a start, or by the command that changes it. */
const secretActions = ['create', 'update'] as const

/** Creates the parts of the room in the order of their dependencies. */
export function createAudit(options: AuditOptions): Audit {
  const { settings, database, read, clock, log, onAnonymous } = options
  const store = createTrailStore(database)
  const headFile =
    options.stateDirectory === undefined
      ? undefined
      : openHeadFile(join(options.stateDirectory, headName), log)
  const trail = createTrail({ store, database, clock, log, ...(headFile ? { headFile } : {}) })
  const monotonic = () => clock.monotonic()
  const anonymous = createFlood({ trail, callers: 'without a session', monotonic, onAdmitted: onAnonymous })
  const users = createFlood({ trail, callers: 'of logged-in users', monotonic })
  const batch = createBatch(trail)
  const record = (entry: SystemEntry) => void trail.append(systemEntry(entry))
  if (database.aside !== undefined) trail.append(beginEntry(database.aside))
  const audits: AuditAccess = {
    ...createSearch({ database, store, read, head: () => trail.head().seq, edgeHostId: options.edgeHostId }),
    async verify(expected) {
      const found = await verifyTrail({ store, head: trail.head(), ...(expected ? { expected } : {}) })
      const loss = store.newest(lossMark.kind, lossMark.action)
      return loss && found.isIntact
        ? { ...found, isIntact: false, problem: { seq: loss.seq, message: loss.message } }
        : found
    },
    unwritten: trail.unwritten,
    download: () => downloadTrail(store, trail.head().seq),
  }
  const oneRetention = createLock()
  let checkedAt = trail.head().seq
  const ages = createAgeClock({ store, trail }, clock)
  const removeSurplus = () => oneRetention(() => retain({ store, trail, clock: ages, ...settings }))
  async function enforceRetention(): Promise<void> {
    trail.announceHead()
    await removeSurplus()
  }
  // Asked for when the daemon answers: the start has recorded by then that the secret is another one.
  let isLossOpen: boolean | undefined
  /** A loss counts until another secret has ended the sessions that it may have brought back. */
  function isUnanswered(): boolean {
    const loss = store.newest(lossMark.kind, lossMark.action)
    if (!loss) return trail.isLost
    return secretActions.every((action) => (store.newest('secret', action)?.seq ?? 0) < loss.seq)
  }
  function flush(): void {
    batch.flush()
    anonymous.flush()
    users.flush()
  }
  return {
    requests: createRequestAudit({ trail, batch, anonymous, users }),
    access: audits,
    count: () => countOf(trail.head().seq, store.first()),
    record,
    lastResource: (kind, action) => store.newest(kind, action)?.resourceUid,
    unwritten: trail.unwritten,
    completeUntil: trail.completeUntil,
    checks: [{ name: 'audit trail complete', kind: 'note', holds: () => !(isLossOpen ??= isUnanswered()) }],
    enforceRetention,
    flush,
    async routes(app) {
      await auditRoutes(app, { audits, listTokens: options.listTokens, now: () => clock.now() })
    },
    jobs: [
      {
        name: 'audit trail',
        schedule: '23 41 * * * *',
        stuckAfterMs: 900_000,
        run: enforceRetention,
      },
      {
        // A caller with many changes must not fill the disk within the hour.
        name: 'audit trail size',
        schedule: '*/10 * * * * *',
        stuckAfterMs: 900_000,
        async run() {
          if (trail.head().seq - checkedAt < comparedAfter || store.usedBytes() <= settings.limitBytes) return
          checkedAt = trail.head().seq
          await removeSurplus()
        },
      },
    ],
    figures: (): FiguresOf<typeof about.families> => ({
      edgehostd_audit_unwritten_records_total: trail.unwritten(),
    }),
    start() {
      record({ action: 'action', kind: 'daemon', message: options.startMessage })
      trail.announceHead()
    },
    stop() {
      flush()
      record({ action: 'action', kind: 'daemon', message: 'Stop' })
      trail.announceHead()
      headFile?.close()
    },
  }
}
