import type { FastifyRequest } from 'fastify'
import { Type, type TProperties } from 'typebox'
import { uidOf } from '../../base/uid.ts'
import { describeSpelling } from '../../api/spelling.ts'
import { refusedField } from '../../errors/refused-field.ts'

const ProjectUid = Type.Optional(Type.String({ description: 'The project; also as a header.' }))

/** A query that admits no names but these: a misspelt one would have no effect. */
export const onlyOf = <Properties extends TProperties>(properties: Properties) =>
  Type.Object({ ...properties, ProjectUid }, { additionalProperties: false })

/** Query parameters of all routes of the platform. */
export const commonParameters = ['ProjectUid']

/** The project of a request that the guard has accepted; empty for the tenant. */
export const scopeOf = (request: FastifyRequest): string => namedProject(request) ?? ''

/** The parameter of reads by which users with roles in a project alone see the items of the tenant that the project may use. */
export const OfTenant = {
  ofTenant: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'The items of the tenant for all projects, instead of the ones of the project.',
    }),
  ),
}

/** The scope that a request with `OfTenant` reads; empty for the tenant. */
export const readScopeOf = (request: FastifyRequest): string =>
  (request.query as { readonly ofTenant?: unknown }).ofTenant === true ? '' : scopeOf(request)

/**
 * The uid of the project that a request names, in the header `ProjectUid` or the query parameter of that name; `undefined` for the tenant.
 * A text that is no uid becomes an empty one, which no project has.
 * @throws AppError BadRequest where header and query, or several values of one, differ, and for a misspelt parameter or an empty one
 */
export function namedProject(request: FastifyRequest): string | undefined {
  // Here, and not behind the guard alone: a change that names its project as `projectUid` would be one of the tenant.
  const misspelt = describeSpelling(request, commonParameters)
  if (misspelt) throw misspelt
  const { headers, query } = request
  const inHeader = headers.projectuid
  const inQuery = (query as Readonly<Record<string, unknown>> | null)?.ProjectUid
  // As from a variable of a shell that is not set: the change would be one of the tenant.
  if ([inQuery].flat().includes('')) throw refusedField('ProjectUid', 'is empty; leave it out for the tenant')
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
