import type { FastifyInstance, FastifyRequest } from 'fastify'
import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import type { AppError } from '../errors/app-error.ts'
import { refusedField } from '../errors/refused-field.ts'
import { fieldPath } from './compilers.ts'

const safe = ['GET', 'HEAD', 'OPTIONS']

/**
 * Refuses query parameters that would have no effect because of their spelling: with `filter` for `filters` the reply would have all items.
 * Other unknown names are ignored, since clients of the published API send parameters of features that are not here. `dryRun` is refused
 * where a route does not offer it: the client expects that nothing is changed. Misspelt fields of bodies are refused too: without `isSensitiv` a
 * secret would be stored as plain text. Not in bodies of hosts: a later version may have more fields.
 * @param common parameters of all routes
 */
export function addSpelling(app: FastifyInstance, common: readonly string[]): void {
  const schemas: unknown[] = []
  let fields: ReadonlySet<string> | undefined
  // Collected when a name is in question, since hardly any is.
  const isField: IsField = (parent, name) => (fields ??= fieldsOf(schemas)).has(fieldKey(parent, name))
  app.addHook('onRoute', (route) => {
    schemas.push(route.schema?.body, route.schema?.response)
    const { access, audit } = route.config ?? {}
    const isOfHost = access === 'host' || (typeof audit === 'object' && audit.isOfHost === true)
    const body = route.schema?.body as Shape | undefined
    if (body && !isOfHost)
      route.preValidation = [
        (request: FastifyRequest, _reply: unknown, done: (error?: Error) => void) =>
          done(describeFields(request.body, body, isField)),
        ...[route.preValidation ?? []].flat(),
      ]
    // Behind the guard, which knows the caller first.
    route.onRequest = [
      ...[route.onRequest ?? []].flat(),
      (request, _reply, done) => done(describeSpelling(request, common)),
    ]
  })
}

/** @returns BadRequest with the parameter, if one of the request is misspelt */
export function describeSpelling(
  { method, query, routeOptions }: FastifyRequest,
  common: readonly string[],
): AppError | undefined {
  const names = Object.keys(query ?? {})
  if (names.length === 0) return undefined
  const schema = routeOptions.schema?.querystring as { readonly properties?: object } | undefined
  const known = [...Object.keys(schema?.properties ?? {}), ...common]
  for (const name of names) {
    if (known.includes(name)) continue
    const meant = nearestName(name, known) ?? beginningWith(name, known)
    if (meant !== undefined) return refusedField(printable(name), `is misspelt; write ${meant}`)
    if (!safe.includes(method) && nearestName(name, ['dryRun']) !== undefined)
      return refusedField(printable(name), 'is not offered here; nothing was changed')
  }
  return undefined
}

/** The used keywords of a JSON schema. */
interface Shape {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, Shape>>
  readonly items?: Shape
  /** Names that are free. */
  readonly patternProperties?: object
  readonly additionalProperties?: boolean | object
}

/** Whether an object in the field `parent` has a field of this name in any body or reply; the parent of a whole one is empty. */
type IsField = (parent: string, name: string) => boolean

const fieldKey = (parent: string, name: string) => `${parent}/${name}`

/** The fields in schemas, each with its parent field: `label` of an option says nothing of `metadata`. */
function fieldsOf(schemas: readonly unknown[]): ReadonlySet<string> {
  const fields = new Set<string>()
  const seen = new Map<string, Set<object>>()
  const visit = (value: unknown, parent: string) => {
    if (typeof value !== 'object' || value === null) return
    const visited = seen.get(parent) ?? new Set()
    if (visited.has(value)) return
    seen.set(parent, visited.add(value))
    const { properties, ...others } = value as Shape
    for (const [name, inner] of Object.entries(properties ?? {})) {
      fields.add(fieldKey(parent, name))
      // A list has whole replies in `items`.
      visit(inner, name === 'items' ? parent : name)
    }
    for (const inner of Object.values(others)) visit(inner, parent)
  }
  for (const schema of schemas) visit(schema, '')
  return fields
}

/**
 * Finds a field that is misspelt: unknown, and near to one that is not given; or one that belongs in another field beside it. A body as a
 * reply gave it has fields that requests have not.
 * @param isField whether bodies and replies have a field there that this one has not
 * @param parent the field that has the value
 * @returns BadRequest with its path. Pure.
 */
export function describeFields(
  value: unknown,
  { properties, items, patternProperties, additionalProperties }: Shape,
  isField: IsField,
  pointer = '',
  parent = '',
): AppError | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) {
    if (!items) return undefined
    for (const [index, each] of value.entries()) {
      const misspelt = describeFields(each, items, isField, `${pointer}/${index}`, parent)
      if (misspelt) return misspelt
    }
    return undefined
  }
  if (!properties || patternProperties || typeof additionalProperties === 'object') return undefined
  for (const [name, inner] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known) {
      const misspelt = describeFields(inner, known, isField, `${pointer}/${name}`, name)
      if (misspelt) return misspelt
      continue
    }
    const meant = nearestName(
      name,
      Object.keys(properties).filter((each) => !Object.hasOwn(value, each)),
    )
    if (isField(parent, name)) continue
    const field = fieldPath(`${pointer}/${printable(name)}`)
    if (meant !== undefined) return refusedField(field, `is misspelt; write ${meant}`)
    const [home, ...others] = Object.keys(properties).filter((each) =>
      Object.hasOwn(properties[each]?.properties ?? {}, name),
    )
    if (home === undefined || others.length > 0) continue
    const place = fieldPath(`${pointer}/${home}`)
    return refusedField(field, `belongs in ${place}; write ${place}.${name}`)
  }
  return undefined
}

/** `project` is meant as `ProjectUid`, `order` as `orderBy`. */
const beginningWith = (name: string, known: readonly string[]) =>
  name.length < 4 ? undefined : known.find((each) => each.toLowerCase().startsWith(name.toLowerCase()))

/** @returns BadRequest with the path of a field that is misspelt in a value that is no body, or a part of one. Pure. */
export const misspeltIn = (value: unknown, schema: object): AppError | undefined =>
  describeFields(value, schema, () => false)
