import { isRecord } from '../../base/json.ts'
import { canonicalText } from '../configuration/canonical.ts'
import { findVariable } from './document.ts'

/**
 * Merges a patch into a document (RFC 7396): null takes a member away, objects are merged, everything else replaces.
 * @returns another document
 * @throws AppError BadRequest for a patch that is nested too deeply
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  // Refuses what is nested too deeply.
  canonicalText(patch)
  return merge(document, patch)
}

/**
 * Merges a part of a ClusterConfiguration into one: as a merge patch, but that the entries of the lists that have names (variables, pools,
 * hosts) are merged by them. An entry that is not there yet is added, and those that are not named stay; other lists are replaced.
 * @returns another document
 * @throws AppError BadRequest for a part that is nested too deeply
 */
export function applyConfigurationPart(document: unknown, part: unknown): unknown {
  canonicalText(part)
  return merge(document, part, namedLists)
}

type Entry = Readonly<Record<string, unknown>>

/** Lists whose entries have names, by the path of their members: what an entry of a part means of those that are there. */
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
