import { addressGroup } from '../base/address.ts'
import type { Batch } from './batch.ts'
import type { Flood } from './flood.ts'
import type { AuditEntry } from './record.ts'
import type { Trail } from './trail.ts'

/** The facts of a request before it is answered. */
export interface AuditedRequest extends Omit<AuditEntry, 'outcome' | 'status'> {
  readonly hasSession: boolean
  /** Whether this is a refusal without a record of its own, as returned by `admit`. */
  readonly isCounted: boolean
}

/** Records requests. */
export interface RequestAudit {
  /**
   * Whether one more refusal gets a record of its own. Call it once for each refusal; a positive answer is used up.
   * @param hasSession callers with a session have their own limit, so that a flood of others cannot hide them
   */
  admit(hasSession: boolean): boolean
  /**
   * Writes the intent of a request to the disk, before the request changes something.
   * @returns the uid for `end`; undefined when the disk cannot be written
   */
  begin(request: AuditedRequest): string | undefined
  /**
   * Records the outcome: in a record of its own, or in the sum of counted refusals, whose intents are then removed.
   * @param begun the return value of `begin`, if it was called
   * @returns uid of the record, as soon as the record is on the disk; for a sum, as soon as its intent is
   */
  end(request: AuditedRequest, status: number, begun: string | undefined): Promise<string>
}

export interface RequestAuditOptions {
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
    async end(request, status, begun) {
      if (request.isCounted) {
        const uid = (request.hasSession ? users : anonymous).count(addressGroup(request.address), status)
        if (begun !== undefined) await batch.add({ entry: undefined, uid: begun, isIntent: true })
        return uid
      }
      const uid = begun ?? trail.newUid()
      await batch.add({ entry: toEntry(request, status), uid, isIntent: begun !== undefined })
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
    ...{ actorType, actor, role, address, action, kind, resourceName, resourceUid },
    ...{ message, outcome, status, requestId, actorUid, projectUid },
  }
}
