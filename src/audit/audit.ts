import type { Readable } from 'node:stream'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { createBatch } from './batch.ts'
import { downloadTrail } from './download.ts'
import { createFlood } from './flood.ts'
import { beginEntry, systemEntry, type SystemEntry } from './own-entries.ts'
import type { AuditAction, AuditHead } from './record.ts'
import { createRequestAudit, type RequestAudit } from './request-audit.ts'
import { retain, type RetentionLimits } from './retention.ts'
import { createSearch, type Search, type SearchOptions } from './search.ts'
import { createTrailStore } from './trail-store.ts'
import { createTrail } from './trail.ts'
import { verifyTrail, type Verification } from './verification.ts'

export interface AuditOptions {
  readonly settings: RetentionLimits
  readonly database: Database
  /** Reads beside the event loop. */
  readonly read: SearchOptions['read']
  readonly clock: Clock
  readonly log: Logger
  /** Told of each record that a refused caller without a session has, whose copy is a line in the journal. */
  readonly onStranger?: () => void
}

export type { SystemEntry }

/** The room, put together. */
export interface Audit {
  /** For the HTTPS edge. */
  readonly requests: RequestAudit
  /** Records what the daemon did by itself. */
  record(entry: SystemEntry): void
  /** Which resource the newest record of a kind and action names. */
  lastResource(kind: string, action: AuditAction): string | undefined
  /** What the routes need; `edgeHostId` is that of this host. */
  routes(edgeHostId: string): AuditAccess
  /** Writes the head to the journal, and takes away what is too old or too much; to be done hourly. */
  keep(): Promise<void>
  /** Writes the hash of the newest record to the journal. */
  announceHead(): void
  /** Records that only the journal has, since the start. */
  unwritten(): number
  /** Writes what is waiting, and what was only counted yet. */
  stop(): void
}

/** The trail as administrators see it. */
export interface AuditAccess extends Search {
  /** @param expected a head that was kept elsewhere */
  verify(expected: AuditHead | undefined): Promise<Verification>
  unwritten(): number
  /** A tar archive of everything. */
  download(): Readable
}

/** Builds the parts of the room in the order in which they need each other. */
export function createAudit(options: AuditOptions): Audit {
  const { settings, database, read, clock, log, onStranger } = options
  const store = createTrailStore(database)
  const trail = createTrail({ store, database, clock, log })
  const monotonic = () => clock.monotonic()
  const strangers = createFlood({ trail, callers: 'without a session', monotonic, onAdmitted: onStranger })
  const users = createFlood({ trail, callers: 'of logged-in users', monotonic })
  const batch = createBatch(trail)
  const record = (entry: SystemEntry) => void trail.append(systemEntry(entry))
  if (database.aside !== undefined) trail.append(beginEntry(database.aside))
  return {
    requests: createRequestAudit({ trail, batch, strangers, users }),
    record,
    lastResource: (kind, action) => store.newest(kind, action)?.resourceUid,
    routes: (edgeHostId) => ({
      ...createSearch({ database, store, read, head: () => trail.head().seq, edgeHostId }),
      verify: (expected) => verifyTrail({ store, head: trail.head(), ...(expected ? { expected } : {}) }),
      unwritten: trail.unwritten,
      download: () => downloadTrail(store, trail.head().seq),
    }),
    async keep() {
      trail.announceHead()
      await retain({ store, trail, clock, ...settings })
    },
    announceHead: trail.announceHead,
    unwritten: trail.unwritten,
    stop() {
      batch.flush()
      strangers.flush()
      users.flush()
    },
  }
}
