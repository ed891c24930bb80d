import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import type { Problem, Profile, ProfilePack, Variable } from '../definition.ts'
import { checkShape } from '../format/check-shape.ts'
import { ProfileFile, VariableEntry, VariablesFile } from '../format/format.ts'
import { parseJson } from '../format/parse-json.ts'

/** A text of an archive and where it stands. */
export interface Text {
  readonly place: string
  readonly content: string
}

export type ExportedProfile = Static<typeof ProfileFile>

/** A pack of a profile as it was exported, before the folders of the archive say which version it means. */
export interface ExportedPack extends ProfilePack {
  /** Beside the tag, the version that a tag such as `1.25.x` stood for; empty where it is not said. */
  readonly version: string
}

/** A profile as it was exported. */
export interface ReadProfile extends Profile {
  readonly packs: readonly ExportedPack[]
}

// Values of variables are given by the uid, so it stays the same for the same name, in each version of this program.
const uidPrefix = 'edgehostd cluster profile\n'

/** The uid of a profile that was exported without one: 24 hexadecimal digits that follow from its name alone. */
export const deriveUid = (name: string): string =>
  createHash('sha256').update(`${uidPrefix}${name}`).digest('hex').slice(0, 24)

/** The annotation of a pack by which the same pack may stand in a profile more than once. */
export const displayNameKey = 'spectrocloud.com/display-name'

export interface ProfileReading {
  /** Text of variables.json; where it is there it counts, and not what the profile says. */
  readonly variables?: Text | undefined
  /** Of its text: JSON in archives; what people export may be YAML. */
  readonly parse?: typeof parseJson
  /** The uid where the profile does not say it; else it follows from the name. */
  readonly uid?: string | undefined
}

/**
 * A profile in the shape in which the platform exports it.
 * @returns no profile where it cannot be used at all; `exported` is all of its file, fields that mean nothing here too
 */
export function readProfile(
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
  return { profile, exported, problems: own.problems }
}

/** Exports hold tags as labels: of a tag without a value the label has a fixed value of its own. */
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

/** One that is wrong takes no other with it. */
function readVariables(place: string, path: string, all: readonly unknown[]) {
  const problems: Problem[] = []
  const variables: Variable[] = []
  for (const [index, each] of all.entries()) {
    const own = checkShape(place, each, VariableEntry).map((problem) => ({
      ...problem,
      place: `${place}#${[`${path}[${index}]`, problem.place.slice(place.length + 1)].filter(Boolean).join('.')}`,
    }))
    problems.push(...own)
    if (own.length === 0) variables.push(toVariable(each as Static<typeof VariableEntry>))
  }
  return { variables, problems }
}

/** Known fields only; null and what is not set are left out alike. */
function toVariable(entry: Static<typeof VariableEntry>): Variable {
  const known = Object.keys(VariableEntry.properties) as (keyof Static<typeof VariableEntry>)[]
  return Object.fromEntries(
    known.flatMap((name) => ((entry[name] ?? null) === null ? [] : [[name, entry[name]]])),
  ) as unknown as Variable
}
