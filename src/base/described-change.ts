import { isRecord } from './json.ts'
import { masked } from './mask.ts'

/**
 * What the trail compares of a resource: the view that replies give of it, or a part of it. Annotations are those of other programs, and large:
 * their names alone are said.
 */
export type Compared = Readonly<Record<string, unknown>>

/** A sensitive value: the trail says that it differs, and never what it is. */
class Hidden {
  readonly #value: string
  constructor(value: string) {
    this.#value = value
  }
  isAs(other: Hidden): boolean {
    return this.#value === other.#value
  }
  toJSON(): string {
    return masked
  }
}

/** For a sensitive value in what is compared; an empty one is none. */
export const hidden = (value: string): unknown => (value === '' ? '' : new Hidden(value))

/** Times change with each change, and every resource has the others. */
const unsaid = new Set([
  'apiVersion',
  'kind',
  'lastModifiedTimestamp',
  'creationTimestamp',
  'lastSignIn',
  'lastUsed',
  'uid',
  'annotations',
])
const longestValue = 120
/** So that a record, which is cut at 1,024 characters, names how many more there are. */
const longestChange = 840

/** `roles: viewer -> admin; labels.hall: none -> 3`; empty where nothing differs. */
export function describeChange(before: Compared, after: Compared): string {
  const [old, now] = [flat(before), flat(after)]
  const parts = [...new Set([...old.keys(), ...now.keys()])].sort().flatMap((path) => {
    const [from, to] = [old.get(path) ?? 'none', now.get(path) ?? 'none']
    if (isSame(from, to)) return []
    const another = from instanceof Hidden && to instanceof Hidden ? 'another ' : ''
    return [`${path}: ${said(from, to)} -> ${another}${said(to, from)}`]
  })
  let length = 0
  const fitting = parts.filter((part) => (length += part.length + 2) <= longestChange)
  const more = parts.length - fitting.length
  return [...fitting, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

type Flat = string | Hidden

const isSame = (one: Flat, other: Flat): boolean =>
  one instanceof Hidden || other instanceof Hidden
    ? one instanceof Hidden && other instanceof Hidden && one.isAs(other)
    : one === other

/** A value, of a long one the part where it begins to differ. */
function said(value: Flat, other: Flat): string {
  if (value instanceof Hidden) return masked
  if (value.length <= longestValue) return value
  const text = other instanceof Hidden ? '' : other
  let same = 0
  while (same < value.length && value[same] === text[same]) same += 1
  const from = same < longestValue / 2 ? 0 : same - longestValue / 4
  const to = from + longestValue
  return `${from > 0 ? '…' : ''}${value.slice(from, to)}${to < value.length ? '…' : ''}`
}

/**
 * The values of a view by their paths, without the `metadata`, `spec` and `status` that every resource has. Entries of lists that have names are
 * found by these.
 */
function flat(value: Compared, path = '', found = new Map<string, Flat>()): Map<string, Flat> {
  for (const [name, member] of Object.entries(value)) {
    const isPart = path === '' && ['metadata', 'spec', 'status'].includes(name)
    const inner = isPart ? '' : path === '' ? name : `${path}.${name}`
    if (name === 'annotations' && isRecord(member))
      for (const [key, text] of Object.entries(member))
        found.set(`${inner}.${key}`, `${String(text).length} characters`)
    if (unsaid.has(name) || member === undefined) continue
    const entries = Array.isArray(member) ? byName(member) : member
    if (entries instanceof Hidden) found.set(inner, entries)
    else if (isRecord(entries)) flat(entries, inner, found)
    else found.set(inner, textOf(entries))
  }
  return found
}

/** A list of named entries as an object; others as they are. */
function byName(list: readonly unknown[]): unknown {
  const named = list.flatMap((entry): [string, Compared][] => {
    if (!isRecord(entry) || typeof entry.name !== 'string') return []
    const { name, ...rest } = entry
    return [[name, rest]]
  })
  const isNamed = named.length > 0 && named.length === list.length
  return isNamed && new Set(named.map(([name]) => name)).size === named.length
    ? Object.fromEntries(named)
    : list
}

function textOf(value: unknown): string {
  if (Array.isArray(value))
    return value.every((each) => typeof each === 'string')
      ? value.toSorted().join(', ') || 'none'
      : JSON.stringify(value)
  return typeof value === 'string' ? value || 'none' : JSON.stringify(value)
}
