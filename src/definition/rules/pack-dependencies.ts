import { compareNumbers, splitVersion } from '../version-numbers.ts'
import { printable } from '../../base/printable.ts'
import type { Definition, PackDependency, ProfilePack } from '../definition.ts'
import type { Report } from './problem-list.ts'

/**
 * Checks `constraints.dependencies` of every pack.json against the packs of all profiles. A required pack must be present.
 * The version of a required or optional pack must be in the range, that of an unsupported pack must not be. Dependencies of
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
