import { setImmediate } from 'node:timers'
import type { AuditedRequest, RequestAudit } from '../api/audit-hook.ts'
import type { Pending, Trail } from './trail.ts'
import { addressGroup } from '../base/address.ts'
import type { Flood } from './flood.ts'
import type { AuditEntry } from './record.ts'

/**
 * Writes the records of all requests that end in one turn of the event loop together, so that two hundred simultaneous
 * logins wait for the disk a few times instead of two hundred times: every wait blocks every request.
 */
interface Batch {
  /**
   * Resolves when the record is on the disk, or the disk cannot be written. A record of the daemon itself from the same
   * turn comes before it.
   * @throws what `writeAll` throws for this record
   */
  add(record: Pending): Promise<void>
  /** Writes all waiting records to the disk at once. */
  flush(): void
}

interface Waiting {
  readonly record: Pending
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export function createBatch({ writeAll }: Pick<Trail, 'writeAll'>): Batch {
  const waiting: Waiting[] = []

  function write(all: readonly Waiting[]): void {
    try {
      writeAll(all.map(({ record }) => record))
    } catch (error) {
      // Nothing was written. One bad record must not prevent the others.
      if (all.length > 1) for (const each of all) write([each])
      else for (const { reject } of all) reject(error)
      return
    }
    for (const { resolve } of all) resolve()
  }

  function flush(): void {
    if (waiting.length > 0) write(waiting.splice(0))
  }

  return {
    add: (record) =>
      new Promise<void>((resolve, reject) => {
        if (waiting.push({ record, resolve, reject }) === 1) setImmediate(flush)
      }),
    flush,
  }
}

interface RequestAuditOptions {
  readonly trail: Trail
  /** Writes the records. */
  readonly batch: Batch
  /** Refusals of callers without a session. */
  readonly anonymous: Flood
  /** Refusals of callers with a session. */
  readonly users: Flood
}

export function createRequestAudit({ trail, batch, anonymous, users }: RequestAuditOptions): RequestAudit {
  return {
    admit: (hasSession) => (hasSession ? users : anonymous).admit(),
    begin: (request) => trail.begin(toEntry(request, null)),
    async end(request, status, started) {
      if (request.isCounted) {
        const uid = (request.hasSession ? users : anonymous).count(addressGroup(request.address), status)
        if (started !== undefined) await batch.add({ entry: undefined, uid: started, isIntent: true })
        return uid
      }
      const uid = started ?? trail.newUid()
      await batch.add({ entry: toEntry(request, status), uid, isIntent: started !== undefined })
      return uid
    },
  }
}

function toEntry(request: AuditedRequest, status: number | null): AuditEntry {
  const { actorType, actor, role, address, action, kind, resourceName, resourceUid, message, requestId } =
    request
  const { actorUid, projectUid } = request
  const outcome = status === null ? 'unknown' : status < 400 ? 'success' : status < 500 ? 'refused' : 'failed'
  return {
    actorType,
    actor,
    role,
    address,
    action,
    kind,
    resourceName,
    resourceUid,
    message,
    outcome,
    status,
    requestId,
    actorUid,
    projectUid,
  }
}
