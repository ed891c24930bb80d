import { isDeepStrictEqual } from 'node:util'
import { parseTime } from '../../base/time.ts'
import { refusedField } from '../../errors/refused-field.ts'

/** Credentials of a caller, as the guard knows them. */
interface Presented {
  /** Uid of the user or the host. */
  readonly uid?: string | undefined
  readonly kind?: 'user' | 'key' | 'host' | undefined
  /** The session of a token, or the uid of a key. */
  readonly sessionUid: string | undefined
}

/**
 * Receives changes that end requests in flight, once they are in the database. Credentials that expire end none, nor does a token that is exchanged
 * for a new one, or a further login of a host: a long request outlasts them.
 */
export interface CallerChanges {
  /** Users, keys, hosts or tokens are not accepted any more. */
  gone(isGone: (caller: Presented) => boolean): void
  /**
   * Roles were changed, or a project deleted: for each request in flight `authorize` decides again, and the request ends with its refusal. So
   * the transaction that writes a row only has to check the signal of its request.
   */
  rightsChanged(): void
}

/** The requests in flight, as the app knows them. */
interface RequestsInFlight {
  endSessions(isGone: (caller: Presented) => boolean): void
  recheckRights(): void
}

/** The changes for the parts that are built before the app; before it is attached no request is in flight. */
export function createCallerChanges(): CallerChanges & { attach(requests: RequestsInFlight): void } {
  let inFlight: RequestsInFlight | undefined
  return {
    gone: (isGone) => inFlight?.endSessions(isGone),
    rightsChanged: () => inFlight?.recheckRights(),
    attach(requests) {
      inFlight = requests
    },
  }
}

/** Fields that a body may contain and may not change. */
interface Resource {
  readonly metadata?: {
    readonly name?: string | undefined
    readonly uid?: string | undefined
    readonly creationTimestamp?: string | undefined
  }
  readonly status?: unknown
}

/**
 * Refuses a body that would change a fixed field; a body as a reply gave it is accepted.
 * @param current the resource as it is; without it, it is being created, and may have none of these except its name
 * @throws AppError BadRequest with the path
 */
export function requireUnchanged(given: Resource, current?: Resource): void {
  const { metadata = {}, status } = given
  const of = current?.metadata
  if (metadata.uid !== undefined && metadata.uid !== of?.uid)
    throw refusedField('metadata.uid', 'is generated and cannot be changed')
  if (
    metadata.creationTimestamp !== undefined &&
    !isSameTime(metadata.creationTimestamp, of?.creationTimestamp)
  )
    throw refusedField('metadata.creationTimestamp', 'cannot be changed')
  if (current && metadata.name !== undefined && metadata.name !== of?.name)
    throw refusedField('metadata.name', `cannot be changed; it is ${of?.name ?? ''}`)
  if (status !== undefined && !isDeepStrictEqual(status, current?.status))
    throw refusedField('status', 'cannot be set')
}

function isSameTime(given: string, current: string | undefined): boolean {
  const at = parseTime(given)
  return at !== undefined && current !== undefined && at === parseTime(current)
}

type Texts = Readonly<Record<string, string>>

const most = 64

/**
 * The annotations after a change: the ones that it does not name stay, and one with an empty value is removed.
 * @throws AppError BadRequest for more than 64 of them together
 */
export function changedAnnotations(before: Texts, given: Texts = {}): Texts {
  const after = Object.fromEntries(
    Object.entries({ ...before, ...given }).filter(([, value]) => value !== ''),
  )
  if (Object.keys(after).length > most)
    throw refusedField(
      'metadata.annotations',
      `would be more than ${most} with those that are there; remove some, each by an empty value`,
    )
  return after
}
