import { addressGroup } from '../system/address.ts'
import type { Flood } from './flood.ts'
import type { AuditEntry } from './record.ts'
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
  /**
   * Records what came of it, a flood of refusals as one record a minute.
   * @param begun what `begin` gave, if it was called
   * @returns uid of the record
   */
  end(request: AuditedRequest, status: number, begun: string | undefined): string
}

export function createRequestAudit({ trail, flood }: { trail: Trail; flood: Flood }): RequestAudit {
  return {
    begin: (request) => trail.begin(toEntry(request, null)),
    end(request, status, begun) {
      const entry = toEntry(request, status)
      if (begun !== undefined) {
        trail.finish(begun, entry)
        return begun
      }
      const counted =
        request.isCountable && status >= 400 ? flood.count(addressGroup(request.address), status) : undefined
      return counted ?? trail.append(entry)
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
