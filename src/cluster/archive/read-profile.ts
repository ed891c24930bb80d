import type { Static } from 'typebox'
import type { Problem, Profile, Variable } from '../definition.ts'
import { checkShape } from './check-shape.ts'
import { ProfileFile, VariableEntry, VariablesFile } from './format.ts'
import { parseJson } from './parse-json.ts'

/** A text of an archive and where it stands. */
export interface Text {
  readonly place: string
  readonly content: string
}

type ExportedProfile = Static<typeof ProfileFile>

/**
 * A profile in the shape in which the platform exports it.
 * @param variables text of variables.json; where it is there it counts, and not what the profile says
 * @returns no profile where it cannot be used at all; `exported` is all of its file, fields that mean nothing here too
 */
export function readProfile(
  { place, content }: Text,
  variables: Text | undefined,
): { profile: Profile | undefined; exported?: ExportedProfile; problems: Problem[] } {
  const { value, problems } = parseJson(place, content)
  if (problems.length > 0) return { profile: undefined, problems }
  const wrong = checkShape(place, value, ProfileFile)
  const listed = variables === undefined ? undefined : readVariablesFile(variables)
  if (wrong.length > 0) return { profile: undefined, problems: [...wrong, ...(listed?.problems ?? [])] }
  const exported = value as ExportedProfile
  const { metadata, spec } = exported
  const own = listed ?? readVariables(place, 'spec.variables', spec.variables ?? [])
  const profile: Profile = {
    place,
    uid: metadata.uid,
    name: metadata.name,
    version: spec.version ?? '',
    description: metadata.description ?? '',
    tags: metadata.tags ?? [],
    type: spec.template.type,
    packs: spec.template.packs.map((pack) => ({
      name: pack.name,
      tag: pack.tag,
      layer: pack.layer ?? '',
      type: pack.type ?? '',
      uid: pack.uid ?? '',
      values: pack.values ?? '',
      manifests: (pack.manifests ?? []).map(({ name, content: manifest }) => ({ name, content: manifest })),
    })),
    variables: own.variables,
  }
  return { profile, exported, problems: own.problems }
}

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
