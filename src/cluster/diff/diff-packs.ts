import { packIdOf, type WantedChart, type WantedNamespace, type WantedPack } from '../wanted.ts'
import { diffLines } from './diff-lines.ts'
import type { ChartChange, NamedChange, PackChange } from './schemas.ts'
import type { DiffSide } from './side.ts'

type PackSide = Pick<DiffSide, 'wanted' | 'profiles'>

/** A pack of a definition; `wanted` is undefined where nothing of it is installed by this host. */
interface PackView {
  readonly id: string
  readonly name: string
  readonly displayName: string
  readonly version: string
  /** As the profile has them, with macros. */
  readonly values: string
  readonly wanted: WantedPack | undefined
}

/** Masks sensitive values in a text. */
export type Hide = (text: string) => string

/** Packs that differ: those of `after` in the order of their installation, then those that are removed, the last installed first. Pure. */
export function diffPacks(before: PackSide, after: PackSide, hide: Hide): PackChange[] {
  const [were, are] = [viewsOf(before), viewsOf(after)]
  const present = [...are.values()].flatMap((view) => {
    const was = were.get(view.id)
    return was ? changed(was, view, hide) : [wholly('added', view)]
  })
  const gone = [...were.values()].filter(({ id }) => !are.has(id)).reverse()
  return [...present, ...gone.map((view) => wholly('removed', view))]
}

/** The installed packs in their order, then those of which nothing is installed. */
function viewsOf({ wanted, profiles }: PackSide): ReadonlyMap<string, PackView> {
  const shown = new Map(
    profiles.flatMap(({ profileUid, packs }) =>
      packs.map(({ name, displayName = '', version, values }): [string, PackView] => {
        const id = packIdOf(profileUid, name, displayName)
        return [id, { id, name, displayName, version, values, wanted: undefined }]
      }),
    ),
  )
  const installed = wanted.packs.map((pack): [string, PackView] => {
    const { id, name, displayName, version } = pack
    return [id, { id, name, displayName, version, values: shown.get(id)?.values ?? '', wanted: pack }]
  })
  const ids = new Set(installed.map(([id]) => id))
  return new Map([...installed, ...[...shown].filter(([id]) => !ids.has(id))])
}

const named = ({ id, name, displayName }: PackView) => ({
  ...{ id, name },
  ...(displayName === '' ? {} : { displayName }),
})

function wholly(change: 'added' | 'removed', view: PackView): PackChange {
  const { version, wanted } = view
  return {
    ...{ ...named(view), change },
    ...(change === 'added' ? { toVersion: version } : { fromVersion: version }),
    fields: [],
    ...partsOf(change === 'added' ? undefined : wanted, change === 'added' ? wanted : undefined),
    isApplied: wanted !== undefined,
    isDrained: false,
  }
}

function changed(was: PackView, is: PackView, hide: Hide): PackChange[] {
  const isApplied = was.wanted?.digest !== is.wanted?.digest
  const parts = partsOf(was.wanted, is.wanted)
  const { manifests, charts, namespaces } = parts
  const differs: Readonly<Record<PackChange['fields'][number], boolean>> = {
    version: was.version !== is.version,
    values: was.values !== is.values || charts.some(({ valuesChanged }) => valuesChanged),
    order: was.wanted !== undefined && is.wanted !== undefined && was.wanted.order !== is.wanted.order,
    manifests: manifests.length > 0,
    charts: charts.length > 0,
    namespaces: namespaces.length > 0,
    // Earlier versions have kept one digest for the whole pack.
    content: isApplied && manifests.length + charts.length + namespaces.length === 0,
  }
  const fields = (Object.keys(differs) as PackChange['fields']).filter((field) => differs[field])
  if (fields.length === 0) return []
  return [
    {
      ...{ ...named(is), change: 'changed', fromVersion: was.version, toVersion: is.version },
      ...(was.values === is.values ? {} : valuesOf(was, is, hide)),
      ...{ fields, ...parts, isApplied, isDrained: isApplied && is.wanted?.drain !== undefined },
    },
  ]
}

/** Masked as a whole, since a value may have several lines. */
function valuesOf(was: PackView, is: PackView, hide: Hide): Pick<PackChange, 'values' | 'valuesLeftOut'> {
  const { lines, leftOut } = diffLines(hide(was.values), hide(is.values))
  return { values: [...lines], ...(leftOut > 0 ? { valuesLeftOut: leftOut } : {}) }
}

type Parts = Pick<PackChange, 'manifests' | 'charts' | 'namespaces'>

const partsOf = (was: WantedPack | undefined, is: WantedPack | undefined): Parts => ({
  manifests: pairs(was?.manifests ?? [], is?.manifests ?? [], ({ name }) => name).flatMap(
    ({ before, after }): NamedChange[] => {
      const isSame = isSameSum(before?.sum, after?.sum) && before?.namespace === after?.namespace
      if (before && after && isSame) return []
      return [{ name: (after ?? before)?.name ?? '', change: changeOf(before, after) }]
    },
  ),
  charts: pairs(was?.charts ?? [], is?.charts ?? [], releaseOf).flatMap(chartChange),
  namespaces: pairs(was?.namespaces ?? [], is?.namespaces ?? [], ({ name }) => name).flatMap(
    ({ before, after }): NamedChange[] =>
      before && after && isSameNamespace(before, after)
        ? []
        : [{ name: (after ?? before)?.name ?? '', change: changeOf(before, after) }],
  ),
})

/** A sum that is not known says nothing; `content` is reported then. */
const isSameSum = (one: string | undefined, other: string | undefined) =>
  one === undefined || other === undefined || one === other

const releaseOf = ({ namespace, release }: WantedChart) => `${namespace}/${release}`

function chartChange({ before, after }: Pair<WantedChart>): ChartChange[] {
  const shown = after ?? before
  if (!shown) return []
  const { name, namespace, release } = shown
  const valuesChanged = !isSameSum(before?.valuesSum, after?.valuesSum)
  const isSame = before?.version === after?.version && isSameSum(before?.sum, after?.sum)
  if (before && after && isSame && !valuesChanged) return []
  return [
    {
      ...{ name, namespace, release, change: changeOf(before, after), valuesChanged },
      ...(before ? { fromVersion: before.version } : {}),
      ...(after ? { toVersion: after.version } : {}),
    },
  ]
}

const isSameNamespace = (one: WantedNamespace, other: WantedNamespace) =>
  spell(one.labels) === spell(other.labels) && spell(one.annotations) === spell(other.annotations)

const spell = (words: Readonly<Record<string, string>>) =>
  JSON.stringify(Object.entries(words).sort(([a], [b]) => (a < b ? -1 : 1)))

interface Pair<Item> {
  readonly before: Item | undefined
  readonly after: Item | undefined
}

/** Items with the same key; those of `after` first. Of several with one key each has its place among them. */
function pairs<Item>(
  before: readonly Item[],
  after: readonly Item[],
  keyOf: (item: Item) => string,
): Pair<Item>[] {
  const [were, are] = [byKey(before, keyOf), byKey(after, keyOf)]
  return [
    ...[...are].map(([key, item]) => ({ before: were.get(key), after: item })),
    ...[...were].flatMap(([key, item]) => (are.has(key) ? [] : [{ before: item, after: undefined }])),
  ]
}

function byKey<Item>(items: readonly Item[], keyOf: (item: Item) => string): ReadonlyMap<string, Item> {
  const found = new Map<string, Item>()
  for (const item of items) {
    const key = keyOf(item)
    let number = 0
    while (found.has(`${key}\0${number}`)) number += 1
    found.set(`${key}\0${number}`, item)
  }
  return found
}

const changeOf = (before: unknown, after: unknown) =>
  before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
