import { addressGroup } from '../base/address.ts'
import type { Batch } from './batch.ts'
import type { Flood } from './flood.ts'
import type { AuditEntry } from './record.ts'
import type { Trail } from './trail.ts'

/** What is known of a request before it is answered. */
export interface AuditedRequest extends Omit<AuditEntry, 'actorType' | 'outcome' | 'status'> {
  readonly hasSession: boolean
  /** Whether it is a refusal that has no record of its own; as `admit` said. */
  readonly isCounted: boolean
}

/** What is recorded of requests. */
export interface RequestAudit {
  /**
   * Whether one more refusal has a record of its own. To be asked once for each; what was asked is used up.
   * @param hasSession callers with a session cannot be hidden by a flood of others
   */
  admit(hasSession: boolean): boolean
  /**
   * Notes durably what a request is about to do.
   * @returns for `end`; nothing where the disk cannot be written
   */
  begin(request: AuditedRequest): string | undefined
  /**
   * Records what came of it: by itself, or in the sum of those that are only counted. The intents of these are removed.
   * @param begun what `begin` gave, if it was called
   * @returns uid of the record, as soon as that is on the disk; of a sum, as soon as its intent is
   */
  end(request: AuditedRequest, status: number, begun: string | undefined): Promise<string>
}

export interface RequestAuditOptions {
  readonly trail: Trail
  /** Where records go. */
  readonly batch: Batch
  /** Of callers without a session. */
  readonly strangers: Flood
  /** Of callers with one. */
  readonly users: Flood
}

export function createRequestAudit({ trail, batch, strangers, users }: RequestAuditOptions): RequestAudit {
  return {
    admit: (hasSession) => (hasSession ? users : strangers).admit(),
    begin: (request) => trail.begin(toEntry(request, null)),
    async end(request, status, begun) {
      if (request.isCounted) {
        const uid = (request.hasSession ? users : strangers).count(addressGroup(request.address), status)
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
  const { actor, role, address, action, kind, resourceName, resourceUid, message, requestId } = request
  const outcome = status === null ? 'unknown' : status < 400 ? 'success' : status < 500 ? 'refused' : 'failed'
  return {
    ...{ actorType: 'user', actor, role, address, action, kind, resourceName, resourceUid },
    ...{ message, outcome, status, requestId },
  }
}
