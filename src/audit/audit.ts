import type { ContinueTokens } from '../lists/continue-token.ts'
import type { FiguresOf, Room } from '../room.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { about } from './about.ts'
import type { AuditAccess } from './access.ts'
import { createBatch } from './batch.ts'
import type { RetentionLimits } from './config.ts'
import { downloadTrail } from './download.ts'
import { createFlood } from './flood.ts'
import { beginEntry, systemEntry, type SystemEntry } from './own-entries.ts'
import type { AuditAction } from './record.ts'
import { createRequestAudit, type RequestAudit } from './request-audit.ts'
import { retain } from './retention.ts'
import { auditRoutes } from './routes.ts'
import { createSearch, type SearchOptions } from './search.ts'
import { createTrailStore } from './trail-store.ts'
import { createTrail } from './trail.ts'
import { verifyTrail } from './verification.ts'

export interface AuditOptions {
  readonly settings: RetentionLimits
  readonly database: Database
  /** Of this host; stands in each record that a list shows. */
  readonly edgeHostId: string
  readonly listTokens: ContinueTokens
  /** What is recorded of a start of the daemon. */
  readonly startMessage: string
  /** Reads beside the event loop. */
  readonly read: SearchOptions['read']
  readonly clock: Clock
  readonly log: Logger
  /** Told of each record that a refused caller without a session has, whose copy is a line in the journal. */
  readonly onStranger?: () => void
}

export type { SystemEntry }

/** Who did what, when. */
export interface Audit extends Room {
  /** For the HTTPS edge. */
  readonly requests: RequestAudit
  /** Records what the daemon did by itself. */
  record(entry: SystemEntry): void
  /** Which resource the newest record of a kind and action names. */
  lastResource(kind: string, action: AuditAction): string | undefined
  /** Records that only the journal has, since the start. */
  unwritten(): number
  /** Writes the head to the journal, and takes away what is too old or too much; to be done hourly. */
  enforceRetention(): Promise<void>
  /** Writes what is waiting, and what was only counted yet. */
  flush(): void
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
  const audits: AuditAccess = {
    ...createSearch({ database, store, read, head: () => trail.head().seq, edgeHostId: options.edgeHostId }),
    verify: (expected) => verifyTrail({ store, head: trail.head(), ...(expected ? { expected } : {}) }),
    unwritten: trail.unwritten,
    download: () => downloadTrail(store, trail.head().seq),
  }
  async function enforceRetention(): Promise<void> {
    trail.announceHead()
    await retain({ store, trail, clock, ...settings })
  }
  function flush(): void {
    batch.flush()
    strangers.flush()
    users.flush()
  }
  return {
    requests: createRequestAudit({ trail, batch, strangers, users }),
    record,
    lastResource: (kind, action) => store.newest(kind, action)?.resourceUid,
    unwritten: trail.unwritten,
    enforceRetention,
    flush,
    async routes(app) {
      await app.register(auditRoutes, { audits, listTokens: options.listTokens, now: () => clock.now() })
    },
    jobs: [
      {
        name: 'audit trail',
        schedule: '23 41 * * * *',
        stuckAfterMs: 900_000,
        run: enforceRetention,
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
    },
  }
}
