import { isRecord } from './json.ts'
import { masked } from './mask.ts'

/**
 * The compared part of a resource: its view in replies, or a part of it. Annotations belong to other programs and are large: only their
 * names are recorded.
 */
export type Compared = Readonly<Record<string, unknown>>

/** A sensitive value: the trail records that it differs, and never its text. */
class Hidden {
  readonly #value: string
  constructor(value: string) {
    this.#value = value
  }
  /** For a comparison alone. */
  reveal(): string {
    return this.#value
  }
  toJSON(): string {
    return masked
  }
}

/** Wraps a sensitive value for the comparison; an empty one is not sensitive. */
export const hidden = (value: string): unknown => (value === '' ? '' : new Hidden(value))

/** Fields that differ after each change. */
const times = new Set(['lastModifiedTimestamp', 'creationTimestamp', 'lastSignIn', 'lastUsed'])
/** Every resource has them, and its own never change. Within it, they are recorded where another thing has taken the place of one. */
const identities = new Set(['apiVersion', 'kind', 'uid'])
const longestValue = 120
/** So that a record, which is cut at 1,024 characters, names how many more there are. */
const longestChange = 840

/** `roles: viewer -> admin; labels.hall: none -> 3`; empty where nothing differs. */
export function describeChange(before: Compared, after: Compared): string {
  const [old, now] = [flat(before), flat(after)]
  // Empty values of a resource that is made or deleted as a whole say nothing.
  const isWhole = old.size === 0 || now.size === 0
  const parts = [...new Set([...old.keys(), ...now.keys()])].sort().flatMap((path) => {
    const [from, to] = [old.get(path), now.get(path)]
    if (rawOf(from) === rawOf(to) || (isWhole && isEmpty(from) && isEmpty(to))) return []
    const difference = differenceOf(from, to)
    return difference === '' ? [] : [`${path}: ${difference}`]
  })
  let length = 0
  const fitting = parts.filter((part) => (length += part.length + 2) <= longestChange)
  const more = parts.length - fitting.length
  return [...fitting, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

interface Leaf {
  readonly value: unknown
  /** `annotation`: only its length is recorded. `identity`: only another one in the place of one. `names`: only another order. */
  readonly as?: 'annotation' | 'identity' | 'names' | undefined
}

/** Text for the comparison of two values; never recorded, since sensitive ones are in it. */
const rawOf = (leaf: Leaf | undefined): string | undefined =>
  leaf &&
  JSON.stringify(leaf.value, function (this: Record<string, unknown>, name, value: unknown) {
    const member = this[name]
    return member instanceof Hidden ? { hidden: member.reveal() } : value
  })

const isEmpty = (leaf: Leaf | undefined): boolean =>
  leaf === undefined || leaf.value === '' || (Array.isArray(leaf.value) && leaf.value.length === 0)

/** Difference of two values that differ; empty where other values state it. */
function differenceOf(from: Leaf | undefined, to: Leaf | undefined): string {
  const as = [from?.as, to?.as].includes('names') ? 'names' : (from ?? to)?.as
  if (isReordered(from?.value, to?.value)) return 'another order'
  if (as === 'names' || (as === 'identity' && !(from && to))) return ''
  const [old, now] = [textOf(from), textOf(to)]
  if (old !== now) return `${said(old, now)} -> ${said(now, old)}`
  if (as === 'annotation') return 'another text'
  // As of a text that is empty, or reads as if there were none.
  const [exactOld, exactNow] = [exactOf(from), exactOf(to)]
  return exactOld === exactNow
    ? `${said(exactOld, '')} -> another ${said(exactNow, '')}`
    : `${said(exactOld, exactNow)} -> ${said(exactNow, exactOld)}`
}

function isReordered(from: unknown, to: unknown): boolean {
  const sorted = (list: readonly unknown[]) => JSON.stringify(list.toSorted())
  return areTexts(from) && areTexts(to) && sorted(from) === sorted(to)
}

const areTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

function textOf(leaf: Leaf | undefined): string {
  if (leaf === undefined) return 'none'
  const { value, as } = leaf
  if (as === 'annotation') return `${String(value).length} characters`
  if (areTexts(value)) return value.toSorted().join(', ') || 'none'
  return typeof value === 'string'
    ? value || 'none'
    : value instanceof Hidden
      ? masked
      : JSON.stringify(value)
}

const exactOf = (leaf: Leaf | undefined): string =>
  leaf === undefined ? 'not set' : leaf.value instanceof Hidden ? masked : JSON.stringify(leaf.value)

/** A value, of a long one the part where it begins to differ. */
function said(value: string, other: string): string {
  if (value.length <= longestValue) return value
  let same = 0
  while (same < value.length && value[same] === other[same]) same += 1
  const from = same < longestValue / 2 ? 0 : same - longestValue / 4
  const to = from + longestValue
  return `${from > 0 ? '…' : ''}${value.slice(from, to)}${to < value.length ? '…' : ''}`
}

/**
 * The values of a view by their paths, without the `metadata`, `spec` and `status` that every resource has. Entries of lists that have names are
 * found by these.
 * @param isNamed whether the members have names that callers chose, as labels
 */
function flat(
  value: Compared,
  path = '',
  isNamed = false,
  found = new Map<string, Leaf>(),
): Map<string, Leaf> {
  for (const [name, member] of Object.entries(value)) {
    const isPart = path === '' && ['metadata', 'spec', 'status'].includes(name)
    const inner = isPart ? '' : path === '' ? name : `${path}.${name}`
    const isIdentity = !isNamed && identities.has(name)
    if (member === undefined || (!isNamed && times.has(name)) || (isIdentity && path === '')) continue
    if (!isNamed && name === 'annotations' && isRecord(member)) {
      for (const [key, text] of Object.entries(member))
        found.set(`${inner}.${key}`, { value: text, as: 'annotation' })
      continue
    }
    const entries = Array.isArray(member) ? byName(member) : undefined
    if (entries) {
      found.set(inner, { value: Object.keys(entries), as: 'names' })
      flat(entries, inner, true, found)
    } else if (isRecord(member) && !(member instanceof Hidden))
      flat(member, inner, !isNamed && /labels$/i.test(name), found)
    else found.set(inner, { value: member, as: isIdentity ? 'identity' : undefined })
  }
  return found
}

/** A list of named entries as an object; undefined for others. */
function byName(list: readonly unknown[]): Compared | undefined {
  const named = list.flatMap((entry): [string, Compared][] => {
    if (!isRecord(entry) || typeof entry.name !== 'string') return []
    const { name, ...rest } = entry
    return [[name, rest]]
  })
  const isNamed = named.length > 0 && named.length === list.length
  return isNamed && new Set(named.map(([name]) => name)).size === named.length
    ? Object.fromEntries(named)
    : undefined
}
