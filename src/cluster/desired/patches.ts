import { isDeepStrictEqual } from 'node:util'
import { refusedField } from '../../errors/refused-field.ts'
import { canonicalText } from './configuration.ts'
import { isRecord } from '../../base/json.ts'
import { findVariable } from './draft.ts'

// More than a configuration needs: each operation may read the whole document.
const mostOperations = 1_000
// Sum of all copies. Copies of copies grow as powers of two, and each is read once.
const mostCharacters = 2 ** 20

interface Place {
  readonly parent: object
  readonly key: string
}

/**
 * Applies a JSON Patch (RFC 6902) to a document; all of it or nothing.
 * @param field name of the operations in errors; empty where they are the body
 * @returns another document
 * @throws AppError BadRequest that names the operation and the reason
 */
export function applyJsonPatch(document: unknown, operations: unknown, field = ''): unknown {
  if (!Array.isArray(operations)) throw refusedField(field || 'body', 'must be an array of operations')
  if (operations.length > mostOperations)
    throw refusedField(field || 'body', `must have at most ${mostOperations} operations`)
  // Refuses too deep nesting.
  canonicalText(operations)
  const root = { '': structuredClone(document) }
  const room = { characters: mostCharacters }
  operations.forEach((operation: unknown, index) => applyOne(root, operation, `${field}[${index}]`, room))
  // Operations that are not deep may make a document that is.
  canonicalText(root)
  return root['']
}

function applyOne(root: object, operation: unknown, field: string, room: { characters: number }): void {
  if (!isContainer(operation) || Array.isArray(operation)) throw refusedField(field, 'must be an operation')
  const { op, path, from, value } = operation as Readonly<Record<string, unknown>>
  const at = pointerOf(path, `${field}.path`)
  const given = () => {
    if (!Object.hasOwn(operation, 'value')) throw refusedField(`${field}.value`, 'is missing')
    return structuredClone(value)
  }
  const source = () => pointerOf(from, `${field}.from`)
  switch (op) {
    case 'add':
      add(root, at, given(), `${field}.path`)
      return
    case 'remove':
      take(root, at, `${field}.path`)
      return
    case 'replace': {
      const place = existing(root, at, `${field}.path`)
      set(place, given())
      return
    }
    case 'move': {
      const origin = source()
      if (origin.length < at.length && origin.every((token, index) => token === at[index]))
        throw refusedField(`${field}.path`, 'is inside of what is moved')
      add(root, at, take(root, origin, `${field}.from`), `${field}.path`)
      return
    }
    case 'copy': {
      const copied = get(existing(root, source(), `${field}.from`))
      // Not the whole document, which may be large: a thousand small copies would take minutes.
      room.characters -= canonicalText(copied).length
      if (room.characters < 0) throw refusedField(field, 'makes the document too large')
      add(root, at, structuredClone(copied), `${field}.path`)
      return
    }
    case 'test':
      if (!isDeepStrictEqual(get(existing(root, at, `${field}.path`)), given()))
        throw refusedField(field, `does not hold: the value at ${JSON.stringify(path)} is another one`)
      return
    default:
      throw refusedField(`${field}.op`, 'must be one of: add, remove, replace, move, copy, test')
  }
}

/** The tokens of a JSON Pointer (RFC 6901), after the root's. */
function pointerOf(path: unknown, field: string): readonly string[] {
  if (typeof path !== 'string') throw refusedField(field, path === undefined ? 'is missing' : 'must be text')
  if ((path !== '' && !path.startsWith('/')) || /~(?![01])/.test(path))
    throw refusedField(field, 'must be a JSON Pointer, for example /spec/profileVariables/0/value')
  return path.split('/').map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The place that a pointer names, which may have no value yet. */
function placeOf(root: object, tokens: readonly string[], field: string): Place {
  let parent = root
  for (const token of tokens.slice(0, -1)) {
    const next = Object.hasOwn(parent, token) ? get({ parent, key: token }) : undefined
    if (!isContainer(next)) throw refusedField(field, 'leads to nothing')
    parent = next
  }
  const key = tokens.at(-1) ?? ''
  // It would be the prototype of the object, not a member.
  if (key === '__proto__') throw refusedField(field, 'leads to nothing')
  return { parent, key }
}

function existing(root: object, tokens: readonly string[], field: string): Place {
  const place = placeOf(root, tokens, field)
  const { parent, key } = place
  if (!Object.hasOwn(parent, key) || (Array.isArray(parent) && !isIndex(key)))
    throw refusedField(field, 'leads to nothing')
  return place
}

function add(root: object, tokens: readonly string[], value: unknown, field: string): void {
  const place = placeOf(root, tokens, field)
  const { parent, key } = place
  if (!Array.isArray(parent)) {
    set(place, value)
    return
  }
  const index = key === '-' ? parent.length : isIndex(key) ? Number(key) : NaN
  if (!(index <= parent.length)) throw refusedField(field, 'is no place in the list')
  parent.splice(index, 0, value)
}

function take(root: object, tokens: readonly string[], field: string): unknown {
  if (tokens.length === 1) throw refusedField(field, 'is the whole document, which cannot be taken away')
  const place = existing(root, tokens, field)
  const value = get(place)
  const { parent, key } = place
  if (Array.isArray(parent)) parent.splice(Number(key), 1)
  else Reflect.deleteProperty(parent, key)
  return value
}

const get = ({ parent, key }: Place): unknown => (parent as Readonly<Record<string, unknown>>)[key]
const set = ({ parent, key }: Place, value: unknown) =>
  void ((parent as Record<string, unknown>)[key] = value)
const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null
const isIndex = (token: string) => /^(?:0|[1-9]\d*)$/.test(token)

/**
 * Merges a patch into a document (RFC 7396): null takes a member away, objects are merged, everything else replaces.
 * @returns another document
 * @throws AppError BadRequest for a patch that is nested too deeply
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  // Refuses too deep nesting.
  canonicalText(patch)
  return merge(document, patch)
}

/**
 * Merges a part of a ClusterConfiguration into one: as a merge patch, but that the entries of the lists that have names (variables, pools,
 * hosts) are merged by them. An entry that is not there yet is added, and unnamed ones stay; other lists are replaced.
 * @returns another document
 * @throws AppError BadRequest for a part that is nested too deeply
 */
export function applyConfigurationPart(document: unknown, part: unknown): unknown {
  canonicalText(part)
  return merge(document, part, namedLists)
}

type Entry = Readonly<Record<string, unknown>>

/** Lists whose entries have names, by the path of their members: the existing entry that an entry of a part means. */
interface NamedLists {
  readonly [member: string]: NamedLists | FindEntry
}
interface FindEntry {
  readonly find: (present: readonly Entry[], given: Entry) => Entry | undefined
  readonly within: NamedLists
}

const nameOf = (entry: Entry, ...members: readonly string[]): string => {
  const texts = members.map((member) => entry[member])
  return texts.find((text): text is string => typeof text === 'string' && text !== '') ?? ''
}

// An entry without a name is the only one that there is.
const byName =
  (...members: readonly string[]): FindEntry['find'] =>
  (present, given) => {
    const name = nameOf(given, ...members)
    const same = present.find((each) => nameOf(each, ...members) === name)
    const [only] = present.length === 1 ? present : []
    return same ?? (only && [name, nameOf(only, ...members)].includes('') ? only : undefined)
  }

const variable: FindEntry['find'] = (present, given) => present[findVariable(present, given) ?? -1]

const hosts: FindEntry = { find: byName('hostUid', 'hostID'), within: {} }
const namedLists: NamedLists = {
  spec: {
    profileVariables: { find: variable, within: {} },
    cloudConfig: { spec: { machinePoolConfig: { find: byName('name'), within: { hosts } } } },
  },
}

const isNamedList = (lists: NamedLists | FindEntry): lists is FindEntry => typeof lists.find === 'function'

function merge(target: unknown, patch: unknown, lists: NamedLists | FindEntry = {}): unknown {
  if (isNamedList(lists)) {
    if (Array.isArray(patch)) return mergeEntries(Array.isArray(target) ? target : [], patch, lists)
    return merge(target, patch)
  }
  if (!isRecord(patch)) return patch
  const merged = new Map(isRecord(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch))
    if (value === null) merged.delete(key)
    else merged.set(key, merge(merged.get(key), value, Object.hasOwn(lists, key) ? lists[key] : {}))
  return Object.fromEntries(merged)
}

function mergeEntries(
  target: readonly unknown[],
  patch: readonly unknown[],
  { find, within }: FindEntry,
): readonly unknown[] {
  const entries = [...target]
  const present = target.filter(isRecord)
  for (const given of patch) {
    const found = isRecord(given) ? find(present, given) : undefined
    const merged = merge(found, given, within)
    if (found) entries[entries.indexOf(found)] = merged
    else entries.push(merged)
    if (!isRecord(merged)) continue
    if (found) present[present.indexOf(found)] = merged
    else present.push(merged)
  }
  return entries
}
