import type { Client } from '../../ctl/client.ts'
import type { CommandLine } from '../../ctl/command.ts'
import { readGiven, type Given } from '../../ctl/given-values.ts'
import type { ClusterProfile, Variable } from '../schemas/profiles.ts'
import type { Found } from './find-version.ts'

/** A profile of a request, with its values. */
export interface ProfileValues {
  readonly uid: string
  readonly variables: readonly { readonly name: string; readonly value: string }[]
}

/** Whether a command line has values. */
export const hasValues = ({ lists = {} }: CommandLine): boolean =>
  (lists.set ?? lists['set-file']) !== undefined

/** The values of `--set` and `--set-file` for profiles; the declared variables are asked for. @throws Failure usage, without a value in it */
export async function valuesForProfiles(
  client: Client,
  line: CommandLine,
  profiles: readonly Found<ClusterProfile>[],
): Promise<readonly ProfileValues[]> {
  if (!hasValues(line)) return profiles.map(({ item }) => ({ uid: item.metadata.uid, variables: [] }))
  const known = []
  for (const { item, pathOf } of profiles) {
    const { variables } = await client.get<{ variables: Variable[] }>(pathOf('/variables'), ['variables'])
    known.push({ uid: item.metadata.uid, name: item.metadata.name, variables })
  }
  return byProfile(readGivenOf(line, known), known)
}

type Known = NonNullable<Parameters<typeof readGiven>[1]>

/** The values of `--set` and `--set-file`. @throws Failure usage, without a value in it */
export const readGivenOf = ({ lists = {} }: CommandLine, known: Known): readonly Given[] =>
  readGiven({ set: lists.set ?? [], setFile: lists['set-file'] ?? [] }, known)

/** Values, by their profiles. */
export const byProfile = (given: readonly Given[], known: Known): readonly ProfileValues[] =>
  known.map(({ uid }) => ({
    uid,
    variables: given.flatMap(({ name, value, profileUid }) => (profileUid === uid ? [{ name, value }] : [])),
  }))
