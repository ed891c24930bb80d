import { addressGroup } from '../system/address.ts'
import type { Flood } from './flood.ts'
import type { AuditEntry } from './record.ts'
import type { Batch } from './batch.ts'
import type { Trail } from './trail.ts'

/** What is known of a request before it is answered. */
export interface AuditedRequest extends Omit<AuditEntry, 'actorType' | 'outcome' | 'status'> {
  /** Whether a refusal of it may be one of a sum. */
  readonly isCountable: boolean
}

/** What is recorded of requests. */
export interface RequestAudit {
  /**
   * Notes durably what a request is about to do.
   * @returns for `end`
   * @throws AppError InsufficientStorage
   */
  begin(request: AuditedRequest): string
  /** The same for what goes on anyway: nothing where it cannot be noted. */
  tryBegin(request: AuditedRequest): string | undefined
  /**
   * Records what came of it, a flood of refusals as one record a minute.
   * @param begun what `begin` gave, if it was called
   * @returns uid of the record, as soon as that or what was begun is on the disk
   */
  end(request: AuditedRequest, status: number, begun: string | undefined): Promise<string>
}

/** @param batch where records go */
export function createRequestAudit(trail: Trail, flood: Flood, batch: Batch): RequestAudit {
  return {
    begin: (request) => trail.begin(toEntry(request, null)),
    tryBegin: (request) => trail.tryBegin(toEntry(request, null)),
    async end(request, status, begun) {
      const isCountable = begun === undefined && request.isCountable && status >= 400
      const counted = isCountable ? flood.count(addressGroup(request.address), status) : undefined
      if (counted !== undefined) return counted
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
