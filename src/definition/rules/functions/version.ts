/** A version as the functions of the platform parse it: minor and patch may be omitted. */
export interface Version {
  readonly major: bigint
  readonly minor: bigint
  readonly patch: bigint
  readonly prerelease: string
  readonly metadata: string
  /** With all three numbers and without `v`. */
  readonly text: string
  /** As it was written. */
  readonly original: string
}

const identifiers = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*'
const form = new RegExp(
  `^v?([0-9]+)(?:\\.([0-9]+))?(?:\\.([0-9]+))?(?:-(${identifiers}))?(?:\\+(${identifiers}))?$`,
)
const largest = (1n << 64n) - 1n

/** @returns undefined if the text is not a version */
export function parseVersion(original: string): Version | undefined {
  const [, major, minor = '0', patch = '0', prerelease = '', metadata = ''] = form.exec(original) ?? []
  if (major === undefined || original.length > 256) return undefined
  const numbers = [major, minor, patch].map(BigInt)
  if (numbers.some((each) => each > largest)) return undefined
  if (prerelease.split('.').some((part) => /^0[0-9]+$/.test(part))) return undefined
  const [first = 0n, second = 0n, third = 0n] = numbers
  const text = `${first}.${second}.${third}${prerelease && `-${prerelease}`}${metadata && `+${metadata}`}`
  return { major: first, minor: second, patch: third, prerelease, metadata, text, original }
}

/** Orders versions as semver.org defines it; metadata is ignored. @returns negative, 0 or positive */
export function compareVersions(one: Version, other: Version): number {
  for (const part of ['major', 'minor', 'patch'] as const) {
    if (one[part] !== other[part]) return one[part] < other[part] ? -1 : 1
  }
  if (one.prerelease === other.prerelease) return 0
  if (one.prerelease === '' || other.prerelease === '') return one.prerelease === '' ? 1 : -1
  const theirs = other.prerelease.split('.')
  const ours = one.prerelease.split('.')
  for (let index = 0; index < Math.max(ours.length, theirs.length); index += 1) {
    const order = compareIdentifiers(ours[index], theirs[index])
    if (order !== 0) return order
  }
  return 0
}

function compareIdentifiers(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return one === other ? 0 : one === undefined ? -1 : 1
  const [isOne, isOther] = [/^[0-9]+$/.test(one), /^[0-9]+$/.test(other)]
  if (isOne && isOther) return BigInt(one) === BigInt(other) ? 0 : BigInt(one) < BigInt(other) ? -1 : 1
  if (isOne !== isOther) return isOne ? -1 : 1
  return one === other ? 0 : one < other ? -1 : 1
}

interface Constraint {
  readonly operator: string
  readonly version: Version
  /** The first number that was omitted or is x; `none` if all are given. */
  readonly open: 'major' | 'minor' | 'patch' | 'none'
}

const part = '[0-9xX*]+'
const constraintText = `(=||!=|>|<|>=|=>|<=|=<|~|~>|\\^)\\s*(v?(${part})(?:\\.(${part}))?(?:\\.(${part}))?(?:-(${identifiers}))?(?:\\+${identifiers})?)`
const segment = new RegExp(`^\\s*(?:${constraintText}\\s*)(?:(?:\\s+|,\\s*)${constraintText}\\s*)*$`)
const each = new RegExp(constraintText, 'g')
const whole = `v?${part}(?:\\.${part})?(?:\\.${part})?(?:-${identifiers})?(?:\\+${identifiers})?`
const range = new RegExp(`\\s*(${whole})\\s+-\\s+(${whole})\\s*`, 'g')

/** Tests a constraint of semverCompare, such as `>=1.28, <2 || ~1.20`. @returns undefined if the text is not a constraint */
export function satisfies(version: Version, text: string): boolean | undefined {
  if (text.length > 256) return undefined
  const sets = text
    .replace(range, (_found, from: string, to: string) => `>= ${from}, <= ${to}`)
    .split('||')
    .map(readConstraints)
  if (sets.includes(undefined)) return undefined
  return sets.some((set) => {
    // If one constraint of a set has a prerelease, all constraints of the set accept prereleases.
    const takesPrereleases = set?.some(({ version: { prerelease } }) => prerelease !== '') === true
    return set?.every((constraint) => check(version, constraint, takesPrereleases))
  })
}

function readConstraints(text: string): Constraint[] | undefined {
  if (!segment.test(text)) return undefined
  const found: Constraint[] = []
  for (const [, operator = '', , major = '', minor, patch, prerelease] of text.matchAll(each)) {
    const isOpen = (number: string | undefined) => number === undefined || /^[xX*]$/.test(number)
    const open = isOpen(major) ? 'major' : isOpen(minor) ? 'minor' : isOpen(patch) ? 'patch' : 'none'
    const first = open === 'major' ? '0' : major
    const second = open === 'major' || open === 'minor' ? '0' : (minor ?? '')
    const third = open === 'none' ? (patch ?? '') : '0'
    const version = parseVersion(
      `${first}.${second}.${third}${prerelease === undefined ? '' : `-${prerelease}`}`,
    )
    if (version === undefined) return undefined
    found.push({ operator, version, open })
  }
  return found
}

function check(version: Version, constraint: Constraint, takesPrereleases: boolean): boolean {
  const { operator, version: wanted, open } = constraint
  if (version.prerelease !== '' && !takesPrereleases) return false
  const order = compareVersions(version, wanted)
  switch (operator) {
    case '!=':
      return open === 'none' ? order !== 0 : !isWithin(version, constraint)
    case '>':
      if (open === 'none' || open === 'major') return open === 'none' && order > 0
      return order > 0 && !isWithin(version, constraint)
    case '<':
      return order < 0
    case '>=':
    case '=>':
      return order >= 0
    case '<=':
    case '=<':
      return order <= 0 || (open !== 'none' && isWithin(version, constraint))
    case '^':
      return order >= 0 && isCompatible(version, constraint)
    case '~':
    case '~>':
      return order >= 0 && isNear(version, constraint)
    default:
      return open === 'none' ? order === 0 : order >= 0 && isNear(version, constraint)
  }
}

/** Whether the numbers that the constraint gives are the same. */
function isWithin(version: Version, { version: wanted, open }: Constraint): boolean {
  if (open === 'major') return true
  if (version.major !== wanted.major) return false
  return open === 'minor' || version.minor === wanted.minor
}

function isNear(version: Version, { version: wanted, open }: Constraint): boolean {
  if (open === 'major') return true
  if (open === 'none' && wanted.major === 0n && wanted.minor === 0n && wanted.patch === 0n) return true
  return version.major === wanted.major && (open === 'minor' || version.minor === wanted.minor)
}

function isCompatible(version: Version, { version: wanted, open }: Constraint): boolean {
  if (open === 'major') return true
  if (version.major !== wanted.major) return false
  if (wanted.major > 0n || open === 'minor') return true
  if (version.minor !== wanted.minor) return false
  return wanted.minor > 0n || open === 'patch' || version.patch === wanted.patch
}
