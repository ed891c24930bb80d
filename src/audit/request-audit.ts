import { addressGroup } from '../system/address.ts'
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
   * @returns for `end`
   * @throws AppError InsufficientStorage
   */
  begin(request: AuditedRequest): string
  /** The same for what goes on anyway: nothing where it cannot be noted. */
  tryBegin(request: AuditedRequest): string | undefined
  /**
   * Records what came of it: by itself, or in the sum of those that are only counted. Of these, what was begun is
   * forgotten.
   * @param begun what `begin` gave, if it was called
   * @returns uid of the record, as soon as that or what was begun is on the disk
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
    tryBegin: (request) => trail.tryBegin(toEntry(request, null)),
    async end(request, status, begun) {
      if (request.isCounted) {
        if (begun !== undefined) batch.forget(begun)
        const flood = request.hasSession ? users : strangers
        return flood.count(addressGroup(request.address), status)
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
