import { isDeepStrictEqual } from 'node:util'
import { parseTime } from '../base/time.ts'
import { refusedField } from '../errors/refused-field.ts'

/** What a body may contain and may not change. */
interface Resource {
  readonly metadata?: {
    readonly name?: string | undefined
    readonly uid?: string | undefined
    readonly creationTimestamp?: string | undefined
  }
  readonly status?: unknown
}

/**
 * Refuses a body that would change what does not change; a body as a reply gave it is accepted.
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
