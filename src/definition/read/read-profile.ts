import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import { printable } from '../../base/printable.ts'
import type { Problem, Profile, ProfilePack, Variable, Pack } from '../definition.ts'
import { checkShape, checkSpelling } from '../format/check-shape.ts'
import { ProfileFile, VariableEntry, VariablesFile } from '../format/format.ts'
import { parseJson, parseYaml } from '../format/parse.ts'
import { isMap, isScalar } from 'yaml'
import { findMacros } from '../rules/macro.ts'
import { textOf } from '../rules/pack-values.ts'
import { readYaml } from '../rules/yaml-text.ts'
import { chooseVersion } from './choose-version.ts'

/** A text of an archive and its place. */
export interface Text {
  readonly place: string
  readonly content: string
}

export type ExportedProfile = Static<typeof ProfileFile>

/** A pack of an exported profile, before its tag is resolved to the version of a folder of the archive. */
interface ExportedPack extends ProfilePack {
  /** The version that a tag such as `1.25.x` meant at the export; empty if the export does not have it. */
  readonly version: string
}

/** A profile as it was exported. */
export interface ReadProfile extends Profile {
  readonly packs: readonly ExportedPack[]
}

// Values of variables are given by uid, so the uid of a name may not change between versions of this program.
const uidPrefix = 'edgehostd cluster profile\n'

/** The uid of a profile that was exported without one: 24 hexadecimal digits that follow from its name alone. */
export const deriveUid = (name: string): string =>
  createHash('sha256').update(`${uidPrefix}${name}`).digest('hex').slice(0, 24)

/** The annotation that lets a profile contain the same pack more than once. */
export const displayNameKey = 'spectrocloud.com/display-name'

interface ProfileReading {
  /** Text of variables.json; if given, it replaces the variables of the profile. */
  readonly variables?: Text | undefined
  /** The parser of its text: JSON in archives; an exported file may be YAML. */
  readonly parse?: typeof parseJson
  /** The uid if the profile has none; without either, it is derived from the name. */
  readonly uid?: string | undefined
}

/**
 * Parses a profile as the platform exports it.
 * @returns no profile if it cannot be used at all; `exported` is the whole file, with fields that have no meaning here
 */
export function parseProfile(
  { place, content }: Text,
  { variables, parse = parseJson, uid }: ProfileReading = {},
): { profile: ReadProfile | undefined; exported?: ExportedProfile; problems: Problem[] } {
  const { value, problems } = parse(place, content)
  if (problems.length > 0) return { profile: undefined, problems }
  const wrong = checkShape(place, value, ProfileFile)
  const listed = variables === undefined ? undefined : readVariablesFile(variables)
  if (wrong.length > 0) return { profile: undefined, problems: [...wrong, ...(listed?.problems ?? [])] }
  const exported = value as ExportedProfile
  const { metadata, spec } = exported
  const own = listed ?? readVariables(place, 'spec.variables', spec.variables ?? [])
  const profile: ReadProfile = {
    place,
    uid: metadata.uid || uid || deriveUid(metadata.name),
    name: metadata.name,
    version: spec.version ?? '',
    description: metadata.description ?? '',
    tags: metadata.tags ?? tagsOf(metadata.labels ?? {}),
    type: spec.template.type,
    packs: spec.template.packs.map((pack) => ({
      name: pack.name,
      displayName: textOrNone(pack.annotations?.[displayNameKey]),
      tag: pack.tag ?? '',
      version: pack.version ?? '',
      layer: pack.layer ?? '',
      type: pack.type ?? '',
      uid: pack.uid ?? '',
      values: pack.values ?? '',
      manifests: (pack.manifests ?? []).map((manifest) => ({
        name: manifest.name ?? '',
        content: manifest.content ?? '',
      })),
    })),
    variables: own.variables,
  }
  return { profile, exported, problems: [...checkSpelling(place, value, ProfileFile), ...own.problems] }
}

/** Exports write tags as labels; the label of a tag without a value has the fixed value `spectro__tag`. */
const tagsOf = (labels: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(labels).flatMap(([name, value]) =>
    typeof value === 'string' ? [value === '' || value === 'spectro__tag' ? name : `${name}:${value}`] : [],
  )

const textOrNone = (value: unknown) => (typeof value === 'string' ? value : '')

function readVariablesFile({ place, content }: Text): { variables: Variable[]; problems: Problem[] } {
  const { value, problems } = parseJson(place, content)
  if (problems.length > 0) return { variables: [], problems }
  const all = (value as { variables?: unknown } | null)?.variables
  if (!Array.isArray(all)) return { variables: [], problems: checkShape(place, value, VariablesFile) }
  return readVariables(place, 'variables', all)
}

/** A malformed variable is reported; the others are still read. */
function readVariables(place: string, path: string, entries: readonly unknown[]) {
  const problems: Problem[] = []
  const variables: Variable[] = []
  for (const [index, each] of entries.entries()) {
    const own = checkShape(place, each, VariableEntry)
    const all = [...own, ...checkSpelling(place, each, VariableEntry)].map((problem) => ({
      ...problem,
      place: `${place}#${[`${path}[${index}]`, problem.place.slice(place.length + 1)].filter(Boolean).join('.')}`,
      message: `${ofVariable(each)}${problem.message}`,
    }))
    problems.push(...all)
    if (own.length === 0) variables.push(toVariable(each as Static<typeof VariableEntry>))
  }
  return { variables, problems }
}

/** An author of forty variables knows their names, and not their numbers. */
function ofVariable(entry: unknown): string {
  const name = textOrNone((entry as { name?: unknown } | null)?.name)
  return name === '' ? '' : `of the variable ${printable(name.slice(0, 64))} `
}

/** Known fields only; fields that are null or absent are left out. */
function toVariable(entry: Static<typeof VariableEntry>): Variable {
  const known = Object.keys(VariableEntry.properties) as (keyof Static<typeof VariableEntry>)[]
  return Object.fromEntries(
    known.flatMap((name) => ((entry[name] ?? null) === null ? [] : [[name, entry[name]]])),
  ) as unknown as Variable
}

/** A profile in a file as the platform exports it: JSON or YAML. `isYaml`: which of them. */
export function parseExport(text: Text): ReturnType<typeof parseProfile> & { readonly isYaml: boolean } {
  const isYaml = !isJson(text)
  return { ...parseProfile(text, isYaml ? { parse: parseYaml } : {}), isYaml }
}

/** Decided by the file name; if that has no known extension, by the first character of the content. */
const isJson = ({ place, content }: Text): boolean =>
  /\.json$/i.test(place) || (!/\.ya?ml$/i.test(place) && /^\s*[{[]/.test(content))

/** The profiles, each pack with the version of the folder that it refers to and with its display name. */
export function resolvePacks(profiles: readonly ReadProfile[], packs: readonly Pack[]): Profile[] {
  const folders = Map.groupBy(packs, ({ name }) => name)
  return profiles.map((profile) => ({
    ...profile,
    packs: profile.packs.map((pack) => resolve(pack, folders.get(pack.name) ?? [])),
  }))
}

/** @param folders of the pack's name */
function resolve({ version, ...pack }: ExportedPack, folders: readonly Pack[]): ProfilePack {
  const tag = chooseVersion(
    pack.tag,
    version,
    folders.map((folder) => folder.version),
  )
  const folder = folders.find((each) => each.version === tag)
  const values = pack.values.trim() === '' ? (folder?.values ?? '') : pack.values
  return { ...pack, tag, displayName: pack.displayName || displayNameIn(values) }
}

/** `pack."spectrocloud.com/display-name"` of values; the documentation of the platform also writes it without `pack`. */
function displayNameIn(values: string): string {
  if (!values.includes(displayNameKey)) return ''
  const macros = findMacros(values)
  let found = ''
  readYaml(values, macros, ({ contents }, { unmask }) => {
    const inPack = isMap(contents) ? contents.get('pack') : undefined
    for (const map of [inPack, contents]) {
      const node = isMap(map) ? map.get(displayNameKey, true) : undefined
      if (found === '' && isScalar(node) && node.value !== null)
        found = unmask(textOf(node), (index) => values.slice(macros[index]?.start, macros[index]?.end))
    }
  })
  return found
}
