import type { FastifyRequest } from 'fastify'
import { uidOf } from '../../base/uid.ts'
import { refusedField } from '../../errors/refused-field.ts'

/** The project of a request that the guard has accepted; empty for the tenant. */
export const scopeOf = (request: FastifyRequest): string => namedProject(request) ?? ''

/**
 * The uid of the project that a request names, in the header `ProjectUid` or the query parameter of that name; `undefined` for the tenant.
 * A text that is no uid becomes an empty one, which no project has.
 * @throws AppError BadRequest where header and query, or several values of one, differ
 */
export function namedProject({ headers, query }: FastifyRequest): string | undefined {
  const inHeader = headers.projectuid
  const inQuery = (query as Readonly<Record<string, unknown>> | null)?.ProjectUid
  // Node joins the values of a header that is sent more than once.
  const inHeaders = [inHeader ?? []].flat().flatMap((each) => each.split(','))
  const named = [...inHeaders.map((each) => each.trim()), ...[inQuery ?? []].flat()]
    .map(String)
    .filter((each) => each !== '')
  const [first] = named
  if (first === undefined) return undefined
  if (named.some((each) => each !== first))
    throw refusedField('ProjectUid', 'is given more than once, with different values')
  return uidOf(first) ?? ''
}
