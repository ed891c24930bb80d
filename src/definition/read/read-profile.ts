import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import type { Problem, Profile, ProfilePack, Variable } from '../definition.ts'
import { checkShape, checkSpelling } from '../format/check-shape.ts'
import { ProfileFile, VariableEntry, VariablesFile } from '../format/format.ts'
import { parseJson } from '../format/parse-json.ts'

/** A text of an archive and its place. */
export interface Text {
  readonly place: string
  readonly content: string
}

export type ExportedProfile = Static<typeof ProfileFile>

/** A pack of an exported profile, before its tag is resolved to the version of a folder of the archive. */
export interface ExportedPack extends ProfilePack {
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

export interface ProfileReading {
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
    }))
    problems.push(...all)
    if (own.length === 0) variables.push(toVariable(each as Static<typeof VariableEntry>))
  }
  return { variables, problems }
}

/** Known fields only; fields that are null or absent are left out. */
function toVariable(entry: Static<typeof VariableEntry>): Variable {
  const known = Object.keys(VariableEntry.properties) as (keyof Static<typeof VariableEntry>)[]
  return Object.fromEntries(
    known.flatMap((name) => ((entry[name] ?? null) === null ? [] : [[name, entry[name]]])),
  ) as unknown as Variable
}
