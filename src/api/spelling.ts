import type { FastifyInstance, FastifyRequest } from 'fastify'
import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import type { AppError } from '../errors/app-error.ts'
import { refusedField } from '../errors/refused-field.ts'

const safe = ['GET', 'HEAD', 'OPTIONS']

/**
 * Refuses query parameters that would have no effect because of their spelling: with `filter` for `filters` the reply would have all items.
 * Other unknown names are ignored, since clients of the published API send parameters of features that are not here. `dryRun` is refused
 * where a route does not offer it: the client expects that nothing is changed.
 * @param common parameters of all routes
 */
export function addSpelling(app: FastifyInstance, common: readonly string[]): void {
  app.addHook('onRoute', (route) => {
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

/** `project` is meant as `ProjectUid`, `order` as `orderBy`. */
const beginningWith = (name: string, known: readonly string[]) =>
  name.length < 4 ? undefined : known.find((each) => each.toLowerCase().startsWith(name.toLowerCase()))
