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
 * secret would be stored as plain text. Not those of hosts, whose version may be a later one with more fields.
 * @param common parameters of all routes
 */
export function addSpelling(app: FastifyInstance, common: readonly string[]): void {
  const schemas: unknown[] = []
  let words: ReadonlySet<string> | undefined
  // Collected when a name is in question, since hardly any is.
  const isWord = (name: string) => (words ??= wordsOf(schemas)).has(name)
  app.addHook('onRoute', (route) => {
    schemas.push(route.schema)
    const { access, audit } = route.config ?? {}
    const isOfHost = access === 'host' || (typeof audit === 'object' && audit.isOfHost === true)
    const body = route.schema?.body as Shape | undefined
    if (body && !isOfHost)
      route.preValidation = [
        (request: FastifyRequest, _reply: unknown, done: (error?: Error) => void) =>
          done(describeFields(request.body, body, isWord)),
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

/** What is used of a JSON schema. */
interface Shape {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, Shape>>
  readonly items?: Shape
  /** Names that are free. */
  readonly patternProperties?: object
  readonly additionalProperties?: boolean | object
}

/** The names of all fields in schemas. */
function wordsOf(schemas: readonly unknown[]): ReadonlySet<string> {
  const words = new Set<string>()
  const seen = new Set<object>()
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    const { properties } = value as Shape
    if (properties) for (const name of Object.keys(properties)) words.add(name)
    Object.values(value).forEach(visit)
  }
  schemas.forEach(visit)
  return words
}

/**
 * Finds a field that is misspelt: unknown, and near to one that is not given. A body as a reply gave it has fields that requests have not.
 * @param isWord whether it is the name of any field of the API
 * @returns BadRequest with its path. Pure.
 */
export function describeFields(
  value: unknown,
  { properties, items, patternProperties, additionalProperties }: Shape,
  isWord: (name: string) => boolean,
  pointer = '',
): AppError | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) {
    if (!items) return undefined
    for (const [index, each] of value.entries()) {
      const misspelt = describeFields(each, items, isWord, `${pointer}/${index}`)
      if (misspelt) return misspelt
    }
    return undefined
  }
  if (!properties || patternProperties || typeof additionalProperties === 'object') return undefined
  for (const [name, inner] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known) {
      const misspelt = describeFields(inner, known, isWord, `${pointer}/${name}`)
      if (misspelt) return misspelt
      continue
    }
    const meant = nearestName(
      name,
      Object.keys(properties).filter((each) => !Object.hasOwn(value, each)),
    )
    if (meant !== undefined && !isWord(name))
      return refusedField(fieldPath(`${pointer}/${printable(name)}`), `is misspelt; write ${meant}`)
  }
  return undefined
}

/** `project` is meant as `ProjectUid`, `order` as `orderBy`. */
const beginningWith = (name: string, known: readonly string[]) =>
  name.length < 4 ? undefined : known.find((each) => each.toLowerCase().startsWith(name.toLowerCase()))

/** @returns BadRequest with the path of a field that is misspelt in a value that is no body, or a part of one. Pure. */
export const misspeltIn = (value: unknown, schema: object): AppError | undefined =>
  describeFields(value, schema, (name) => wordsOf([schema]).has(name))
