import type { Logger } from '../system/log.ts'
import { hex, type AuditHead, type AuditRecord } from './record.ts'

/** What of the trail goes to the journal, for a site that ships its logs. */
export interface JournalCopy {
  /** A record that is on the disk. */
  write(record: AuditRecord): void
  /** A record that the journal alone has: it has no place in the chain. */
  writeAlone(record: AuditRecord): void
  /** An attacker who can alter the trail may not be able to alter this. */
  writeHead(head: AuditHead): void
}

export function createJournalCopy(log: Logger): JournalCopy {
  // Whatever the level of the log: a site may ship these lines. As they are in the trail, which holds no secret: to look
  // for one takes as long as to write the line.
  const lines = log.child({}, { level: 'info', redact: [] })

  return {
    write: (record) => lines.info(lineOf(record), record.message),
    writeAlone: (record) => lines.info({ ...lineOf(record), seq: null, hash: null }, record.message),
    writeHead: (head) => lines.info({ kind: 'audit-head', ...jsonOf(head) }, 'audit head'),
  }
}

/** A head as the journal and its readers spell it. */
export const jsonOf = ({ seq, hash }: AuditHead) => ({ seq, hash: hex(hash) })

function lineOf(record: AuditRecord) {
  const { seq, uid, hash, actorType, actor, role, address, action, kind, outcome, status, requestId } = record
  return {
    ...{ kind: 'audit', seq, uid, at: new Date(record.at).toISOString(), hash: hex(hash) },
    ...{ actorType, actor, role, address, action, outcome, status, ref: requestId },
    resource: { kind, name: record.resourceName, uid: record.resourceUid },
  }
}
