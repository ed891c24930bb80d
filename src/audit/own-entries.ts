import { hex, type AuditEntry, type AuditHead } from './record.ts'

/** What the daemon says of itself. */
export type SystemEntry = Pick<AuditEntry, 'action' | 'kind' | 'message'> & Partial<AuditEntry>

/** An entry of the daemon's own. */
export function systemEntry(entry: SystemEntry): AuditEntry {
  return {
    ...{ actorType: 'system', actor: 'edgehostd', role: '', address: '', requestId: '' },
    ...{ resourceName: '', resourceUid: '', outcome: 'success', status: null },
    ...entry,
  }
}

/** So many records are in the journal only. */
export const gapEntry = (count: number, since: number): AuditEntry =>
  systemEntry({
    action: 'activity',
    kind: 'audit',
    message: `could not be written since ${new Date(since).toISOString()}: ${count} records are in the journal only`,
    outcome: 'failed',
  })

/** The chain on the disk does not end where this daemon ended it. */
export const forkEntry = (expected: AuditHead, found: AuditHead): AuditEntry =>
  systemEntry({
    action: 'activity',
    kind: 'audit',
    message: `another program changed the trail: its newest record was ${textOf(found)}, not ${textOf(expected)}`,
    outcome: 'failed',
  })

/** A database that was damaged took the trail with it. */
export const beginEntry = (aside: string): AuditEntry =>
  systemEntry({
    action: 'create',
    kind: 'audit',
    message: `Begin a new trail, since the database was damaged; the old one is kept as ${aside}`,
    outcome: 'failed',
  })

const textOf = ({ seq, hash }: AuditHead) => `${seq}:${hex(hash)}`
