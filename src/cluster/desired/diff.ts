import { type GivenVariable, createGivenTo } from '../../definition/definition.ts'
import type { ClusterProfileDetail, Variable } from '../../definition/schemas.ts'
import type { PreparedDefinition } from './prepared.ts'
import {
  type DesiredState,
  packIdOf,
  type DesiredChart,
  type DesiredNamespace,
  type DesiredPack,
  shownPack,
  type DesiredNode,
} from './desired-state.ts'
import type {
  LineChange,
  ChartChange,
  NamedChange,
  PackChange,
  VariableChange,
  ClusterDiff,
  Effect,
} from './schemas.ts'

/** A cluster as it is or as it would be; one revision of it. */
export interface DiffSide {
  readonly desired: DesiredState
  readonly definition: PreparedDefinition
  /** `details.json` of the revision: defaults of sensitive variables are masked. */
  readonly profiles: readonly ClusterProfileDetail[]
  /** `spec.profileVariables` in plain text. */
  readonly given: readonly GivenVariable[]
}

/** The lines in which two texts differ, in their order: of a change first the old ones. */
interface DiffLines {
  readonly lines: readonly LineChange[]
  /** Number of further ones. */
  readonly leftOut: number
}

// More than anyone reads.
const mostLines = 200
const longestLine = 400
// Of a comparison of each line with each: some milliseconds.
const mostCells = 250_000

/** Compares two texts line by line. Where they are long and differ much, the whole part that differs is shown as replaced. Pure. */
export function diffLines(before: string, after: string): DiffLines {
  const [was, is] = [linesOf(before), linesOf(after)]
  const shorter = Math.min(was.length, is.length)
  let start = 0
  while (start < shorter && was[start] === is[start]) start += 1
  let end = 0
  while (end < shorter - start && was.at(-1 - end) === is.at(-1 - end)) end += 1
  const changes = between(was.slice(start, was.length - end), is.slice(start, is.length - end))
  const lines = changes.slice(0, mostLines).map(({ change, line, text }) => ({
    change,
    line: line + start + 1,
    text: text.length > longestLine ? `${text.slice(0, longestLine)}...` : text,
  }))
  return { lines, leftOut: changes.length - lines.length }
}

const linesOf = (text: string): readonly string[] => {
  const whole = text.replace(/\r?\n$/, '')
  return whole === '' ? [] : whole.split(/\r?\n/)
}

/** @returns with numbers from 0 */
function between(was: readonly string[], is: readonly string[]): LineChange[] {
  const removed = (line: number): LineChange => ({ change: 'removed', line, text: was[line] ?? '' })
  const added = (line: number): LineChange => ({ change: 'added', line, text: is[line] ?? '' })
  if (was.length * is.length > mostCells)
    return [...was.map((_, line) => removed(line)), ...is.map((_, line) => added(line))]
  // Lengths of the longest common subsequences of the ends from each pair on.
  const width = is.length + 1
  const common = new Uint32Array((was.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = was.length - 1; row >= 0; row -= 1)
    for (let column = is.length - 1; column >= 0; column -= 1)
      common[row * width + column] =
        was[row] === is[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1))
  const found: LineChange[] = []
  let [row, column] = [0, 0]
  while (row < was.length || column < is.length)
    if (row < was.length && column < is.length && was[row] === is[column]) {
      row += 1
      column += 1
    } else if (column === is.length || (row < was.length && at(row + 1, column) >= at(row, column + 1)))
      found.push(removed(row++))
    else found.push(added(column++))
  return found
}

type PackSide = Pick<DiffSide, 'desired' | 'profiles'>

/** A pack of a definition; `desired` is undefined where this host installs nothing of it. */
interface PackView {
  readonly id: string
  readonly name: string
  readonly displayName: string
  readonly version: string
  /** As the profile has them, with macros. */
  readonly values: string
  readonly desired: DesiredPack | undefined
}

/** Masks sensitive values in a text. */
type Hide = (text: string) => string

/** Packs that differ: the packs of `after` in the order of their installation, then removed ones, the last installed first. Pure. */
function diffPacks(before: PackSide, after: PackSide, hide: Hide): PackChange[] {
  const [were, are] = [viewsOf(before), viewsOf(after)]
  const present = [...are.values()].flatMap((view) => {
    const was = were.get(view.id)
    return was ? changed(was, view, hide) : [wholly('added', view)]
  })
  const gone = [...were.values()].filter(({ id }) => !are.has(id)).reverse()
  return [...present, ...gone.map((view) => wholly('removed', view))]
}

/** The installed packs in their order, then packs without installed parts. */
function viewsOf({ desired, profiles }: PackSide): ReadonlyMap<string, PackView> {
  const shown = new Map(
    profiles.flatMap(({ profileUid, packs }) =>
      packs.map(({ name, displayName = '', version, values }): [string, PackView] => {
        const id = packIdOf(profileUid, name, displayName)
        return [id, { id, name, displayName, version, values, desired: undefined }]
      }),
    ),
  )
  const installed = desired.packs.map((pack): [string, PackView] => {
    const { id, name, displayName, version } = pack
    return [id, { id, name, displayName, version, values: shown.get(id)?.values ?? '', desired: pack }]
  })
  const ids = new Set(installed.map(([id]) => id))
  return new Map([...installed, ...[...shown].filter(([id]) => !ids.has(id))])
}

const named = ({ id, name, displayName }: PackView) => ({
  id,
  name,
  ...(displayName === '' ? {} : { displayName }),
})

function wholly(change: 'added' | 'removed', view: PackView): PackChange {
  const { version, desired } = view
  return {
    ...named(view),
    change,
    ...(change === 'added' ? { toVersion: version } : { fromVersion: version }),
    fields: [],
    ...partsOf(change === 'added' ? undefined : desired, change === 'added' ? desired : undefined),
    isApplied: desired !== undefined,
    isDrained: false,
  }
}

function changed(was: PackView, is: PackView, hide: Hide): PackChange[] {
  const isApplied = was.desired?.digest !== is.desired?.digest
  const parts = partsOf(was.desired, is.desired)
  const { manifests, charts, namespaces } = parts
  const differs: Readonly<Record<PackChange['fields'][number], boolean>> = {
    version: was.version !== is.version,
    values: was.values !== is.values || charts.some(({ valuesChanged }) => valuesChanged),
    order: was.desired !== undefined && is.desired !== undefined && was.desired.order !== is.desired.order,
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
      ...named(is),
      change: 'changed',
      fromVersion: was.version,
      toVersion: is.version,
      ...(was.values === is.values ? {} : changedValues(was, is, hide)),
      fields,
      ...parts,
      isApplied,
      isDrained: isApplied && is.desired?.drain !== undefined,
    },
  ]
}

/** Masked as a whole, since a value may have several lines. */
function changedValues(
  was: PackView,
  is: PackView,
  hide: Hide,
): Pick<PackChange, 'values' | 'valuesLeftOut'> {
  const { lines, leftOut } = diffLines(hide(was.values), hide(is.values))
  return { values: [...lines], ...(leftOut > 0 ? { valuesLeftOut: leftOut } : {}) }
}

type Parts = Pick<PackChange, 'manifests' | 'charts' | 'namespaces'>

const partsOf = (was: DesiredPack | undefined, is: DesiredPack | undefined): Parts => ({
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

const releaseOf = ({ namespace, release }: DesiredChart) => `${namespace}/${release}`

function chartChange({ before, after }: Pair<DesiredChart>): ChartChange[] {
  const shown = after ?? before
  if (!shown) return []
  const { name, namespace, release } = shown
  const valuesChanged = !isSameSum(before?.valuesSum, after?.valuesSum)
  const isSame = before?.version === after?.version && isSameSum(before?.sum, after?.sum)
  if (before && after && isSame && !valuesChanged) return []
  return [
    {
      name,
      namespace,
      release,
      change: changeOf(before, after),
      valuesChanged,
      ...(before ? { fromVersion: before.version } : {}),
      ...(after ? { toVersion: after.version } : {}),
    },
  ]
}

const isSameNamespace = (one: DesiredNamespace, other: DesiredNamespace) =>
  spell(one.labels) === spell(other.labels) && spell(one.annotations) === spell(other.annotations)

interface Pair<Item> {
  readonly before: Item | undefined
  readonly after: Item | undefined
}

/** Items with the same key; items of `after` first. Of several with one key each has its place among them. */
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

type VariableSide = Pick<DiffSide, 'profiles' | 'given'>

interface VariableValue {
  readonly profileUid: string
  readonly name: string
  readonly isSensitive: boolean
  readonly value: string
}

/** Variables whose values differ, in the order of their declarations; then undeclared ones. Pure. */
function diffVariables(before: VariableSide, after: VariableSide): VariableChange[] {
  const [were, are] = [valuesByProfile(before), valuesByProfile(after)]
  const present = [...are].flatMap(([key, each]): VariableChange[] => {
    const was = were.get(key)
    if (was === undefined) return [{ ...shown(each), change: 'added', ...ifShown(each, { to: each.value }) }]
    if (was.value === each.value) return []
    // Masked also where only one of the two definitions says that it is sensitive.
    const isSensitive = was.isSensitive || each.isSensitive
    const values = { from: was.value, to: each.value }
    return [{ ...shown(each), isSensitive, change: 'changed', ...ifShown({ isSensitive }, values) }]
  })
  const gone = [...were].flatMap(([key, was]): VariableChange[] =>
    are.has(key) ? [] : [{ ...shown(was), change: 'removed', ...ifShown(was, { from: was.value }) }],
  )
  return [...present, ...gone]
}

const shown = ({ profileUid, name, isSensitive }: VariableValue) => ({ profileUid, name, isSensitive })

const ifShown = <Values>({ isSensitive }: Pick<VariableValue, 'isSensitive'>, values: Values) =>
  isSensitive ? {} : values

function valuesByProfile({ profiles, given }: VariableSide): ReadonlyMap<string, VariableValue> {
  const givenTo = createGivenTo(given)
  return new Map(
    profiles.flatMap(({ profileUid, variables }) =>
      variables.map((variable): [string, VariableValue] => {
        const { name, isSensitive = false } = variable
        const value = valueIn(variable, givenTo({ uid: profileUid }, name))
        return [`${profileUid}\0${name}`, { profileUid, name, isSensitive, value }]
      }),
    ),
  )
}

/** As `valueOf` of the rules, from the API's form of a definition. */
function valueIn({ defaultValue, options = [], immutable }: Variable, given: string | undefined): string {
  if (given !== undefined && !(given === '' && immutable === true)) return given
  return defaultValue ?? options.find((option) => option.default === true)?.value ?? ''
}

/** Effects of a change, in their order, with restarts. Pure. */
function effectsOf({
  kubernetes,
  node,
  packs,
  settings,
}: Pick<ClusterDiff, 'kubernetes' | 'node' | 'packs' | 'settings'>): Effect[] {
  const removed = packs.filter(({ change, isApplied }) => change === 'removed' && isApplied)
  const applied = packs.filter(({ change, isApplied }) => change !== 'removed' && isApplied)
  return [
    ...(kubernetes ? [ofKubernetes(kubernetes)] : []),
    ...(node
      ? [{ target: 'node' as const, restarts: [], message: `the node gets other ${node.fields.join(', ')}` }]
      : []),
    ...removed.map((pack) => ofPack(pack, [], 'is removed, with its releases and objects')),
    ...applied.map((pack) =>
      pack.change === 'added'
        ? ofPack(pack, [], 'is installed')
        : ofPack(pack, restartsOf(pack), `is applied: ${appliedOf(pack).join(', ')}`),
    ),
    ...(settings.ntpServers ? [ofHost([timeService], timeMessage(settings.ntpServers.to))] : []),
    ...(settings.sshKeys
      ? [ofHost([], `the keys file of the host's account gets ${count(settings.sshKeys.to, 'key')}`)]
      : []),
  ]
}

const timeService = 'time service of the host'

const timeMessage = (servers: readonly string[]) =>
  servers.length === 0
    ? 'the host takes its time from its own servers again'
    : `the host takes its time from ${servers.join(', ')}`

function ofKubernetes({ from, to, configurationChanged }: NonNullable<ClusterDiff['kubernetes']>): Effect {
  const restarts = ['API server', 'controller manager', 'scheduler', 'kubelet']
  if (from === to)
    return {
      target: 'kubernetes',
      restarts,
      message:
        'the configuration of Kubernetes changes: of the control plane, the kubelet and kube-proxy restart those that it concerns; workloads keep running',
    }
  const more = configurationChanged ? ', with another configuration' : ''
  return {
    target: 'kubernetes',
    restarts: ['etcd', ...restarts, 'kube-proxy', 'CoreDNS'],
    message: `Kubernetes goes from ${from} to ${to}${more}: its API does not answer for about a minute; workloads keep running`,
  }
}

/** Namespaces are only labelled; Kubernetes replaces the pods of a workload whose template changes. */
const restartsOf = ({ fields, isDrained }: PackChange): string[] => {
  if (isDrained) return ['all pods of it, which are drained first']
  return fields.some((field) => field === 'manifests' || field === 'charts' || field === 'content')
    ? ['pods of it whose templates change']
    : []
}

const appliedOf = ({ fields, manifests, charts, namespaces }: PackChange): string[] => [
  ...(charts.length > 0 ? [`charts ${charts.map(({ name }) => name).join(' ')}`] : []),
  ...(manifests.length > 0 ? [`manifests ${manifests.map(({ name }) => name).join(' ')}`] : []),
  ...(namespaces.length > 0 ? [`namespaces ${namespaces.map(({ name }) => name).join(' ')}`] : []),
  ...(fields.includes('content') ? ['what it installs'] : []),
]

const ofPack = ({ id }: PackChange, restarts: string[], what: string): Effect => ({
  target: 'pack',
  pack: id,
  restarts,
  message: `${shownPack(id)} ${what}`,
})

const ofHost = (restarts: string[], message: string): Effect => ({ target: 'host', restarts, message })

const count = (items: readonly unknown[], noun: string) =>
  `${items.length === 0 ? 'no' : items.length} ${noun}${items.length === 1 ? '' : 's'}`

/**
 * Changes of the cluster. Pure. It contains no value of a sensitive variable; a change of the default of one is not seen, but the packs
 * that use it are.
 * @param hide masks the sensitive values of both in the values of packs, before these are compared line by line; names are for `maskDiff`
 */
export function diffClusters(before: DiffSide, after: DiffSide, hide: Hide = (text) => text): ClusterDiff {
  const [was, is] = [before.desired, after.desired]
  const nodeFields = differingFields(was.node, is.node)
  const ntpServers = listChange(was.settings.ntpServers, is.settings.ntpServers)
  const sshKeys = listChange(was.settings.sshKeys, is.settings.sshKeys)
  const changes: Omit<ClusterDiff, 'isEmpty' | 'effects'> = {
    ...definitionOf(before.definition, after.definition),
    ...kubernetesOf(was, is),
    ...(nodeFields.length > 0 ? { node: { fields: nodeFields } } : {}),
    packs: diffPacks(before, after, hide),
    variables: diffVariables(before, after),
    settings: { ...(ntpServers ? { ntpServers } : {}), ...(sshKeys ? { sshKeys } : {}) },
  }
  const { definition, kubernetes, node, packs, variables, settings } = changes
  const isEmpty =
    [definition, kubernetes, node].every((each) => each === undefined) &&
    [packs, variables, Object.keys(settings)].every(({ length }) => length === 0)
  return { isEmpty, ...changes, effects: effectsOf(changes) }
}

function definitionOf(
  before: PreparedDefinition,
  after: PreparedDefinition,
): Pick<ClusterDiff, 'definition'> {
  if (before.sha256 === after.sha256) return {}
  return { definition: { from: `${before.name} ${before.version}`, to: `${after.name} ${after.version}` } }
}

function kubernetesOf(
  { kubernetes: before }: DesiredState,
  { kubernetes: after }: DesiredState,
): Pick<ClusterDiff, 'kubernetes'> {
  const configurationChanged = before.config !== after.config
  if (before.version === after.version && !configurationChanged) return {}
  return { kubernetes: { from: before.version, to: after.version, configurationChanged } }
}

const nodeFields = ['name', 'address', 'endpoint', 'virtualAddress', 'poolName', 'labels', 'taints'] as const

const differingFields = (before: DesiredNode, after: DesiredNode) =>
  nodeFields.filter((name) => !isEqual(before[name], after[name]))

function listChange(from: readonly string[], to: readonly string[]) {
  return isEqual(from, to) ? undefined : { from: [...from], to: [...to] }
}

/** Whether two values are equal as JSON, whatever the order of the keys is. */
function isEqual(one: unknown, other: unknown): boolean {
  return spell(one) === spell(other)
}

const spell = (value: unknown) =>
  JSON.stringify(value, (_key, each: unknown) =>
    each !== null && typeof each === 'object' && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )

/** Fields with words of the API, which contain nothing of a cluster. */
const wordsOfApi: ReadonlySet<string> = new Set(['change', 'fields', 'target'])

/**
 * Masks every text of a diff, since a sensitive value may be in the name of anything that a definition makes. Pure.
 * @param hide masks the sensitive values of both revisions
 */
export const maskDiff = (diff: ClusterDiff, hide: (text: string) => string): ClusterDiff =>
  maskIn(diff, hide) as ClusterDiff

function maskIn(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === 'string') return hide(value)
  if (Array.isArray(value)) return value.map((each) => maskIn(each, hide))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, wordsOfApi.has(key) ? each : maskIn(each, hide)]),
  )
}
