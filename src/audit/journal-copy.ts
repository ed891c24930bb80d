import type { Logger } from '../system/log.ts'
import { hex, type AuditHead, type AuditRecord } from './record.ts'

/** Copies the trail to the journal, for a site that ships its logs. */
export interface JournalCopy {
  /** Writes a record that is on the disk. */
  write(record: AuditRecord): void
  /** Writes a record that is only in the journal: it has no place in the chain. */
  writeAlone(record: AuditRecord): void
  /** Writes the head. An attacker who can alter the trail may not be able to alter the journal. */
  writeHead(head: AuditHead): void
}

export function createJournalCopy(log: Logger): JournalCopy {
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
export const jsonOf = ({ seq, hash }: AuditHead) => ({ seq, hash: hex(hash) })

function lineOf(record: AuditRecord) {
  const { seq, uid, hash, actorType, actor, role, address, action, kind, outcome, status, requestId } = record
  return {
    ...{ kind: 'audit', seq, uid, at: new Date(record.at).toISOString(), hash: hex(hash) },
    ...{ actorType, actor, role, address, action, outcome, status, ref: requestId },
    ...(record.actorUid && { actorUid: record.actorUid }),
    ...(record.projectUid && { projectUid: record.projectUid }),
    resource: { kind, name: record.resourceName, uid: record.resourceUid },
  }
}
