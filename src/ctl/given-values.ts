import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'
import { readBody } from './read-body.ts'

/** A value for a variable, as the API takes it. */
export interface Given {
  readonly name: string
  readonly profileUid?: string
  readonly value: string
}

/** A profile of a definition, as far as values need it. */
export interface KnownProfile {
  readonly uid: string
  readonly name: string
  readonly variables: readonly { readonly name: string; readonly isSensitive?: boolean }[]
}

/** Values of --set and --set-file. */
export interface Settings {
  /** NAME=VALUE or PROFILE/NAME=VALUE. */
  readonly set: readonly string[]
  /** NAME=FILE or PROFILE/NAME=FILE; - is standard input. */
  readonly setFile: readonly string[]
}

/**
 * The values of a command line.
 * @param profiles of the definition that they are for; undefined where they are not known: then only the host judges
 * @param read reads a file; for tests
 * @throws Failure usage, without a value in it
 */
export function readGiven(
  { set, setFile }: Settings,
  profiles: readonly KnownProfile[] | undefined,
  read: (file: string) => string = readValue,
): readonly Given[] {
  const values = set.map((text) => {
    const { key, rest: value } = splitPair('--set', 'VALUE', text)
    return { option: '--set', key, value: () => value }
  })
  const files = setFile.map((text) => {
    const { key, rest: file } = splitPair('--set-file', 'FILE', text)
    return { option: '--set-file', key, value: () => read(file) }
  })
  const seen = new Set<string>()
  return [...values, ...files].map(({ option, key, value }) => {
    if (seen.has(key)) throw refuse(`${printable(key)} is set twice`)
    seen.add(key)
    const variable = findVariable(option, key, profiles)
    if (variable.isSensitive && option === '--set')
      throw refuse(
        `--set: ${printable(key)} is sensitive, and other users of this machine can read a command line; write the value into a file, or a pipe: --set-file ${printable(key)}=FILE`,
      )
    const { name, profileUid } = variable
    return { name, ...(profileUid === undefined ? {} : { profileUid }), value: value() }
  })
}

function splitPair(option: string, what: string, text: string): { key: string; rest: string } {
  const at = text.indexOf('=')
  // Not the text itself, which may be a secret.
  if (at <= 0) throw refuse(`${option} needs NAME=${what}`)
  return { key: text.slice(0, at), rest: text.slice(at + 1) }
}

interface Found {
  readonly name: string
  readonly profileUid: string | undefined
  readonly isSensitive: boolean
}

function findVariable(option: string, key: string, profiles: readonly KnownProfile[] | undefined): Found {
  const slash = key.lastIndexOf('/')
  const name = key.slice(slash + 1)
  const wanted = slash < 0 ? undefined : key.slice(0, slash)
  if (!profiles) return { name, profileUid: wanted, isSensitive: false }
  const meant = profiles.filter((each) => wanted === undefined || [each.uid, each.name].includes(wanted))
  if (meant.length === 0)
    throw refuse(
      `${option}: there is no profile ${printable(wanted ?? '')}${suggest(
        wanted ?? '',
        profiles.map((each) => each.name),
      )}`,
    )
  const declaring = meant.flatMap((profile) =>
    profile.variables.filter((each) => each.name === name).map((variable) => ({ profile, variable })),
  )
  const [first, second] = declaring
  if (!first)
    throw refuse(
      `${option}: there is no variable ${printable(name)}${suggest(
        name,
        meant.flatMap(({ variables }) => variables.map((each) => each.name)),
      )}`,
    )
  if (second)
    throw refuse(
      `${option}: several profiles have the variable ${printable(name)}; write one of: ${declaring
        .map(({ profile }) => `${profile.name}/${name}`)
        .map((each, index, all) =>
          all.indexOf(each) === all.lastIndexOf(each)
            ? each
            : `${declaring[index]?.profile.uid ?? ''}/${name}`,
        )
        .map(printable)
        .join(', ')}`,
    )
  return { name, profileUid: first.profile.uid, isSensitive: first.variable.isSensitive === true }
}

function suggest(name: string, known: readonly string[]): string {
  const near = nearestName(name, known)
  if (near !== undefined) return `; did you mean ${near}?`
  return known.length === 0 ? '; there are none' : `; there are: ${[...new Set(known)].join(', ')}`
}

/** A value in a file, without the line break at its end. */
const readValue = (file: string): string =>
  readBody(file, '--set-file')
    .toString()
    .replace(/\r?\n$/, '')

const refuse = (message: string) => new Failure('usage', message)
