import { program } from '../base/program.ts'
import { hex, type AuditEntry, type AuditHead } from './record.ts'

/** An action of the daemon itself. */
export type SystemEntry = Pick<AuditEntry, 'action' | 'kind' | 'message'> & Partial<AuditEntry>

/** The entry for an action of the daemon itself. */
export function systemEntry(entry: SystemEntry): AuditEntry {
  return {
    actorType: 'system',
    actor: program.daemon,
    role: '',
    address: '',
    requestId: '',
    resourceName: '',
    resourceUid: '',
    outcome: 'success',
    status: null,
    ...entry,
  }
}

/** The entry that reports how many records are only in the journal. */
export const gapEntry = (count: number, since: number): AuditEntry =>
  systemEntry({
    action: 'activity',
    kind: 'audit',
    message: `could not be written since ${new Date(since).toISOString()}: ${count} records are in the journal only`,
    outcome: 'failed',
  })

/** The entry for a chain whose end on the disk differs from the one that this daemon wrote. */
export const forkEntry = (expected: AuditHead, found: AuditHead): AuditEntry =>
  systemEntry({
    action: 'activity',
    kind: 'audit',
    message: `another program changed the trail: its newest record was ${textOf(found)}, not ${textOf(expected)}`,
    outcome: 'failed',
  })

/** The entry for a trail that was lost with a damaged database. */
export const beginEntry = (aside: string): AuditEntry =>
  systemEntry({
    action: 'create',
    kind: 'audit',
    message: `Begin a new trail, since the database was damaged; the old one is kept as ${aside}`,
    outcome: 'failed',
  })

/** The entry for a database that lacks the last records that this daemon had written to the disk. */
export const lossEntry = (expected: AuditHead, found: AuditHead): AuditEntry =>
  systemEntry({
    ...lossMark,
    message:
      found.seq < expected.seq
        ? `the database lost its last commits: records ${found.seq + 1} to ${expected.seq} of the trail are missing, and with them what they tell of, such as ends of sessions; the newest was ${textOf(expected)}`
        : `the database is not the one of the last start: record ${expected.seq} of the trail is not ${textOf(expected)}`,
    outcome: 'failed',
  })

/** Fields that find the entry of a loss again. */
export const lossMark = { action: 'delete', kind: 'audit' } as const

const textOf = ({ seq, hash }: AuditHead) => `${seq}:${hex(hash)}`
