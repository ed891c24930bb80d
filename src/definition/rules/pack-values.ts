import { isMap, isScalar, isSeq, type Scalar, type YAMLMap } from 'yaml'
import { printable } from '../../base/printable.ts'
import type { Profile, Definition, PackDependency, ProfilePack } from '../definition.ts'
import type { SourceText } from './sources.ts'
import { createSuggest, type Report } from './problem-list.ts'
import { compareNumbers, splitVersion } from '../read/choose-version.ts'

/** A single value in the values of a pack. */
export interface PackValue {
  readonly source: SourceText
  /** `pack.path.to.value` */
  readonly name: string
  readonly scalar: Scalar
}

/** A value, or why there is none. Undefined if the values could not be parsed, which is reported elsewhere. */
type Found =
  | { readonly value: PackValue; readonly code?: never }
  | {
      readonly code: 'MacroPackUnknown' | 'MacroPackAmbiguous' | 'MacroPathEmpty' | 'MacroPathUnknown'
      readonly message: string
      readonly value?: never
    }
  | undefined

/** Finds values of packs by `pack.dotted.path`. Sequences are entered by index. Keys of a mapping are indexed once. */
export function createPackValues(
  sources: readonly SourceText[],
  profiles: readonly Profile[],
): (name: string) => Found {
  const packs = profiles.flatMap((profile) => profile.packs)
  const timesOf = new Map(
    [...Map.groupBy(packs, ({ name }) => name)].map(([name, all]) => [
      name,
      new Set(all.map(({ displayName }) => displayName)).size,
    ]),
  )
  const valuesOf = Map.groupBy(
    sources.filter(({ role, profile }) => role === 'values' && profile),
    ({ packName }) => packName,
  )
  const indices = new Map<YAMLMap, Map<string, unknown>>()
  const known = new Map<string, Found>()
  const suggest = createSuggest(50)

  const indexOf = (map: YAMLMap) => {
    const earlier = indices.get(map)
    if (earlier) return earlier
    const index = new Map<string, unknown>()
    for (const { key, value } of map.items) if (isScalar(key)) index.set(textOf(key), value)
    indices.set(map, index)
    return index
  }

  const walk = (source: SourceText, pack: string, segments: readonly string[]): Found => {
    let node: unknown = source.root
    for (let at = 0; at < segments.length;) {
      const before = [pack, ...segments.slice(0, at)].join('.')
      const segment = segments[at] ?? ''
      if (isSeq(node) && /^(?:0|[1-9][0-9]{0,6})$/.test(segment) && Number(segment) < node.items.length) {
        node = node.items[Number(segment)]
        at += 1
      } else if (isMap(node)) {
        // A key may contain dots; the shortest key that matches is taken.
        const index = indexOf(node)
        const { key, next } = shortestKey(index, segments, at)
        if (key === undefined)
          return {
            code: 'MacroPathEmpty',
            message: `${printable(before)} has no ${printable(segment)}${suggest(segment, index.keys())}`,
          }
        node = index.get(key)
        at = next
      } else return { code: 'MacroPathEmpty', message: `${printable(before)} has nothing below it` }
    }
    const name = [pack, ...segments].join('.')
    if (isScalar(node) && node.value !== null) return { value: { source, name, scalar: node } }
    if (!isMap(node) && !isSeq(node))
      return { code: 'MacroPathEmpty', message: `${printable(name)} has no value` }
    return {
      code: 'MacroPathUnknown',
      message: `${printable(name)} is not a single value; name a text, number or boolean below it`,
    }
  }

  /** @param times number of packs of that name in the profile */
  const findIn = (pack: string, times: number, segments: readonly string[]): Found => {
    const texts = valuesOf.get(pack) ?? []
    if (texts.length === 0)
      return { code: 'MacroPathEmpty', message: `pack ${printable(pack)} has no values` }
    if (texts.some(({ root, yaml }) => !root && yaml.problems.length > 0)) return undefined
    const found = texts.map((source) => walk(source, pack, segments))
    const written = new Set(found.map((each) => (each?.value ? writtenIn(each.value) : undefined)))
    const withValues = texts.reduce((sum, { displayNames }) => sum + displayNames.size, 0)
    if (withValues >= times && written.size === 1) return found[0]
    const name = printable([pack, ...segments].join('.'))
    return {
      code: 'MacroPackAmbiguous',
      message: `${name} is not the same in all ${times} packs of that name; write the value out`,
    }
  }

  const find = (name: string): Found => {
    const parts = name.split('.')
    for (let length = parts.length; length > 0; length -= 1) {
      const pack = parts.slice(0, length).join('.')
      const times = timesOf.get(pack)
      if (times !== undefined) return findIn(pack, times, parts.slice(length))
    }
    const [pack = ''] = parts
    return {
      code: 'MacroPackUnknown',
      message: `no profile contains a pack ${printable(pack)}${suggest(pack, timesOf.keys())}`,
    }
  }

  return (name) => {
    if (!known.has(name)) known.set(name, find(name))
    return known.get(name)
  }
}

function shortestKey(index: ReadonlyMap<string, unknown>, segments: readonly string[], at: number) {
  let key = ''
  for (let next = at + 1; next <= segments.length; next += 1) {
    key = next === at + 1 ? (segments[at] ?? '') : `${key}.${segments[next - 1] ?? ''}`
    if (index.has(key)) return { key, next }
  }
  return { key: undefined, next: at }
}

/** The text of a value with its macros as they are written, to compare values. */
function writtenIn({ source, scalar }: PackValue): string {
  const { macros, content, yaml } = source
  return yaml.masked.unmask(textOf(scalar), (index) =>
    content.slice(macros[index]?.start, macros[index]?.end),
  )
}

/** The text of a scalar as it is written, without quotes: `1.10` stays `1.10`. */
export function textOf({ value, source }: Scalar): string {
  return typeof value === 'string' ? value : (source ?? String(value))
}

/**
 * Checks `constraints.dependencies` of every pack.json against the packs of all profiles. A required pack must be present.
 * The version of a required or optional pack must be in the range, of an unsupported pack it must not be. Dependencies of
 * type `upgrade` or of an unknown type are shown but not checked.
 */
export function checkDependencies({ profiles, packs }: Definition, report: Report): void {
  const present = profiles.flatMap((profile) => profile.packs)
  const named = new Set(present.map(({ name, tag }) => `${name}\0${tag}`))
  const byName = Map.groupBy(present, ({ name }) => name)
  for (const { place, name, version, dependencies } of packs) {
    if (!named.has(`${name}\0${version}`)) continue
    dependencies.forEach((dependency, index) => {
      const found = (byName.get(dependency.packName) ?? []).filter(
        ({ layer }) => dependency.layer === '' || layer === '' || layer === dependency.layer,
      )
      const problem = judge(dependency, found)
      if (problem)
        report(
          problem.code,
          `${place}/pack.json#constraints.dependencies[${index}]`,
          `pack ${printable(name)} ${problem.message}`,
        )
    })
  }
}

function judge(dependency: PackDependency, found: readonly ProfilePack[]) {
  const { packName, layer, type } = dependency
  const wanted = printable(`${packName}${describeRange(dependency)}`)
  const inRange = (pack: ProfilePack) => isInRange(pack.tag, dependency)
  if (type === 'required' && found.length === 0) {
    const where = layer === '' ? '' : ` of layer ${printable(layer)}`
    return {
      code: 'PackDependencyMissing' as const,
      message: `needs pack ${wanted}${where}, which no profile contains; add it`,
    }
  }
  const wrong =
    type === 'required' || type === 'optional'
      ? found.find((pack) => !inRange(pack))
      : type === 'notSupported' && describeRange(dependency) !== ''
        ? found.find(inRange)
        : undefined
  if (wrong === undefined) return undefined
  const verb = type === 'notSupported' ? 'does not work with' : 'works with'
  return {
    code: 'PackDependencyVersion' as const,
    message: `${verb} pack ${wanted}; a profile has ${printable(wrong.tag)}`,
  }
}

/** ` 1.17 to 1.18.6`, ` from 1.17`, ` up to 1.18`, or an empty text. */
export function describeRange({ minVersion, maxVersion }: PackDependency): string {
  if (minVersion !== '' && maxVersion !== '') return ` ${minVersion} to ${maxVersion}`
  if (minVersion !== '') return ` from ${minVersion}`
  return maxVersion === '' ? '' : ` up to ${maxVersion}`
}

/** `1.18.6` is within a maximum of `1.18`. A version that cannot be compared is accepted. */
function isInRange(version: string, { minVersion, maxVersion }: PackDependency): boolean {
  const own = numbersOf(version)
  const low = numbersOf(minVersion)
  const high = numbersOf(maxVersion)
  return (
    (minVersion === '' || compare(own, low, Math.max(own.length, low.length)) >= 0) &&
    (maxVersion === '' || compare(own, high, high.length) <= 0)
  )
}

const numbersOf = (version: string) => splitVersion(version).numbers

function compare(one: readonly number[], other: readonly number[], length: number): number {
  if (one.length === 0 || other.length === 0) return 0
  return compareNumbers(one, other, length)
}
