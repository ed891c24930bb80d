import type { FastifyRequest } from 'fastify'
import { isRecord } from '../../base/json.ts'

/** What the trail compares of a resource: the view that replies give of it, or a part of it. */
export type Compared = Readonly<Record<string, unknown>>

/** Times change with each change, and what a reply masks has no value to show. */
const unsaid = new Set([
  'lastModifiedTimestamp',
  'creationTimestamp',
  'lastSignIn',
  'lastUsed',
  'uid',
  'annotations',
])
const longestValue = 120

/**
 * Makes a change and says in the audit record of the request what it changed: each value that differs, by its path, the old and the new one. It
 * compares what replies show, where sensitive values are masked already. Annotations are those of other programs, and large: their names alone are said.
 * @param read called before and after; undefined where there is nothing yet, or nothing any more
 */
export function auditedChange<T>(
  request: Pick<FastifyRequest, 'auditNote'>,
  read: () => Compared | undefined,
  change: () => T,
): T {
  const before = read() ?? {}
  const result = change()
  request.auditNote = describeChange(before, read() ?? {})
  return result
}

/** `roles: viewer -> admin; labels.hall: none -> 3`; empty where nothing differs. */
export function describeChange(before: Compared, after: Compared): string {
  const [old, now] = [flat(before), flat(after)]
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort()
  return paths
    .filter((path) => old.get(path) !== now.get(path))
    .map((path) => `${path}: ${old.get(path) ?? 'none'} -> ${now.get(path) ?? 'none'}`)
    .join('; ')
}

/** The values of a view by their paths, without the `metadata`, `spec` and `status` that every resource has. */
function flat(value: Compared, path = '', found = new Map<string, string>()): Map<string, string> {
  for (const [name, member] of Object.entries(value)) {
    const isPart = path === '' && ['metadata', 'spec', 'status'].includes(name)
    const inner = isPart ? '' : path === '' ? name : `${path}.${name}`
    if (name === 'annotations' && isRecord(member))
      for (const [key, text] of Object.entries(member))
        found.set(`${inner}.${key}`, `${String(text).length} characters`)
    if (unsaid.has(name)) continue
    if (isRecord(member)) flat(member, inner, found)
    else found.set(inner, textOf(member))
  }
  return found
}

function textOf(value: unknown): string {
  const text = Array.isArray(value)
    ? value.every((each) => typeof each === 'string')
      ? value.toSorted().join(', ') || 'none'
      : JSON.stringify(value)
    : typeof value === 'string'
      ? value || 'none'
      : JSON.stringify(value)
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text
}
