import type {
  ClusterProfileDetail,
  DefinitionDiff,
  Pack,
  PackDiff,
  ProfileDiff,
  Variable,
  VariableDiff,
} from '../schemas.ts'

/**
 * What an operator has to review before an update: profiles that are added, removed or changed, with their packs and
 * variables that are. The order is that of the incoming definition; removed items follow. Profiles are matched by uid,
 * then by name; packs of a profile by name and display name; variables by name. Descriptions and tags of profiles, and
 * logos, are not compared.
 *
 * Both sides come from detailsOf, so secrets are masked: a change of a sensitive default is not seen, also not where
 * values of packs contain it.
 */
export function diffDefinitions(
  running: readonly ClusterProfileDetail[],
  incoming: readonly ClusterProfileDetail[],
): DefinitionDiff {
  const pairs = pairUp(running, incoming, [({ profileUid }) => profileUid, ({ profileName }) => profileName])
  return { profiles: pairs.flatMap(diffProfile) }
}

/** At least one of the two is defined. */
interface Pair<Item> {
  readonly before: Item | undefined
  readonly after: Item | undefined
}

/** Each incoming item with the running one that it replaces, then the running items that have no successor. */
function pairUp<Item>(
  running: readonly Item[],
  incoming: readonly Item[],
  keys: readonly ((item: Item) => string)[],
): Pair<Item>[] {
  const left = new Set(running)
  const replaced = new Map<Item, Item>()
  for (const keyOf of keys) {
    // Of several items with the same key, the first one counts.
    const byKey = new Map([...left].reverse().map((item) => [keyOf(item), item]))
    byKey.delete('')
    for (const item of incoming) {
      const before = replaced.has(item) ? undefined : byKey.get(keyOf(item))
      if (before !== undefined && left.delete(before)) replaced.set(item, before)
    }
  }
  return [
    ...incoming.map((after) => ({ before: replaced.get(after), after })),
    ...[...left].map((before) => ({ before, after: undefined })),
  ]
}

function diffProfile({ before, after }: Pair<ClusterProfileDetail>): ProfileDiff[] {
  const shown = after ?? before
  if (shown === undefined) return []
  const byName = [({ name }: { name: string }) => name]
  const packs = pairUp(before?.packs ?? [], after?.packs ?? [], [packKey]).flatMap(diffPack)
  const variables = pairUp(before?.variables ?? [], after?.variables ?? [], byName).flatMap(diffVariable)
  const fields = before && after ? differing(before, after, ['profileUid', 'profileName', 'profileType']) : []
  const versions = versionsOf(before?.profileVersion, after?.profileVersion)
  const isSameVersion = before?.profileVersion === after?.profileVersion
  if (isSameVersion && [packs, variables, fields].every(({ length }) => length === 0)) return []
  const { profileUid, profileName } = shown
  return [{ profileUid, profileName, change: changeOf(before, after), ...versions, fields, packs, variables }]
}

const packKey = ({ name, displayName = '' }: Pack) => `${name}\0${displayName}`

function diffPack({ before, after }: Pair<Pack>): PackDiff[] {
  const { name = '', displayName } = after ?? before ?? {}
  const versions = versionsOf(before?.version, after?.version)
  const fields = before && after ? differing(before, after, ['layer', 'images', 'guessedImages']) : []
  const valuesChanged = before !== undefined && after !== undefined && before.values !== after.values
  if (before?.version === after?.version && !valuesChanged && fields.length === 0) return []
  const named = { name, ...(displayName === undefined ? {} : { displayName }) }
  return [{ ...named, change: changeOf(before, after), ...versions, valuesChanged, fields }]
}

const variableFields = [
  ...(['displayName', 'description', 'format', 'inputType', 'regex', 'required', 'hidden'] as const),
  ...(['immutable', 'isSensitive', 'defaultValue', 'options'] as const),
]

function diffVariable({ before, after }: Pair<Variable>): VariableDiff[] {
  const name = (after ?? before)?.name ?? ''
  const fields = before && after ? differing(before, after, variableFields) : []
  if (before && after && fields.length === 0) return []
  const asked = after && { required: after.required === true, hasDefault: hasDefault(after) }
  return [{ name, change: changeOf(before, after), ...asked, fields }]
}

function hasDefault({ defaultValue, inputType, options = [] }: Variable): boolean {
  if (defaultValue !== undefined && defaultValue !== '') return true
  return inputType === 'dropdown' && options.some((option) => option.default === true)
}

const changeOf = (before: unknown, after: unknown) =>
  before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'

const versionsOf = (fromVersion: string | undefined, toVersion: string | undefined) => ({
  ...(fromVersion === undefined ? {} : { fromVersion }),
  ...(toVersion === undefined ? {} : { toVersion }),
})

/** Names of the fields that differ. Empty, false and absent all mean: not set. */
function differing<Item extends object>(
  before: Item,
  after: Item,
  names: readonly (keyof Item & string)[],
): string[] {
  const settled = (value: unknown) =>
    JSON.stringify((Array.isArray(value) && value.length === 0 ? '' : value) || '')
  return names.filter((name) => settled(before[name]) !== settled(after[name]))
}
