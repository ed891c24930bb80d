import { orderPaths, refuse, type ListResource, type OrderTerm } from './resource.ts'

// Each term adds a value to the token.
const maximumTerms = 5

/**
 * Parses `<path>=1,<path>=-1`. The key of the resource is appended in the direction of the last term, so that the order
 * is total and one index can serve it. Terms after the key have no effect and are dropped.
 * @throws AppError BadRequest
 */
export function parseOrder(text: string, resource: ListResource): readonly OrderTerm[] {
  const allowed = orderPaths(resource)
  const terms = text.split(',').map((term): OrderTerm => {
    const { path = '', sign } = /^(?<path>.*)=(?<sign>1|-1)$/s.exec(term)?.groups ?? {}
    if (sign === undefined)
      throw refuse('orderBy', 'orderBy must have the form <path>=1 or <path>=-1, with commas between', {
        allowed,
      })
    if (!allowed.includes(path))
      throw refuse('orderBy', `orderBy may only name ${allowed.join(', ')}`, { allowed })
    return { path, direction: sign === '1' ? 1 : -1 }
  })
  if (new Set(terms.map(({ path }) => path)).size < terms.length)
    throw refuse('orderBy', 'orderBy may name a path only once')
  if (terms.length > maximumTerms) throw refuse('orderBy', `orderBy may name at most ${maximumTerms} paths`)
  return totalOrder(terms, resource.key)
}

/** The order for a query without `orderBy`. */
export const defaultOrder = ({ defaultOrder: terms = [], key }: ListResource): readonly OrderTerm[] =>
  totalOrder(terms, key)

function totalOrder(terms: readonly OrderTerm[], key: string): readonly OrderTerm[] {
  const keyAt = terms.findIndex(({ path }) => path === key)
  if (keyAt !== -1) return terms.slice(0, keyAt + 1)
  return [...terms, { path: key, direction: terms.at(-1)?.direction ?? 1 }]
}
