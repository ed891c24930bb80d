import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { uidOf } from '../../base/uid.ts'
import { refusedField } from '../../errors/refused-field.ts'

/** The project of a request that the guard has accepted; empty for the tenant. */
export const scopeOf = (request: FastifyRequest): string => namedProject(request) ?? ''

/** The parameter of reads by which users with roles in a project alone see what the project may use of the tenant. */
export const OfTenant = {
  ofTenant: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'What the tenant has for all projects, instead of what the project has.',
    }),
  ),
}

/** The scope that a request with `OfTenant` reads; empty for the tenant. */
export const readScopeOf = (request: FastifyRequest): string =>
  (request.query as { readonly ofTenant?: unknown }).ofTenant === true ? '' : scopeOf(request)

/**
 * The uid of the project that a request names, in the header `ProjectUid` or the query parameter of that name; `undefined` for the tenant.
 * A text that is no uid becomes an empty one, which no project has.
 * @throws AppError BadRequest where header and query, or several values of one, differ, and for a misspelt parameter
 */
export function namedProject({ headers, query, routeOptions }: FastifyRequest): string | undefined {
  requireSpelt(query, routeOptions.schema?.querystring)
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

/** Without it, a change that names its project as `projectUid` would be one of the tenant. GET /v1/audits has a filter of that name. */
function requireSpelt(query: unknown, schema: unknown): void {
  const declared = (schema as { readonly properties?: object } | undefined)?.properties ?? {}
  for (const name of Object.keys(query ?? {}))
    if (name !== 'ProjectUid' && name.toLowerCase() === 'projectuid' && !Object.hasOwn(declared, name))
      throw refusedField(name, 'is misspelt; write ProjectUid')
}
