import type { PreparedDefinition } from '../prepare/prepared.ts'
import type { Wanted, WantedNode } from '../wanted.ts'
import { diffPacks, type Hide } from './diff-packs.ts'
import { diffVariables } from './diff-variables.ts'
import { effectsOf } from './effects.ts'
import type { ClusterDiff } from './schemas.ts'
import type { DiffSide } from './side.ts'

/**
 * How the cluster would change. Pure. It contains no value of a sensitive variable; a change of the default of one is not seen, but the
 * packs that use it are.
 * @param hide masks the sensitive values of both in the values of packs, before these are compared line by line; names are for `maskDiff`
 */
export function diffClusters(before: DiffSide, after: DiffSide, hide: Hide = (text) => text): ClusterDiff {
  const [was, is] = [before.wanted, after.wanted]
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
  { kubernetes: before }: Wanted,
  { kubernetes: after }: Wanted,
): Pick<ClusterDiff, 'kubernetes'> {
  const configurationChanged = before.config !== after.config
  if (before.version === after.version && !configurationChanged) return {}
  return { kubernetes: { from: before.version, to: after.version, configurationChanged } }
}

const nodeFields = ['name', 'address', 'endpoint', 'virtualAddress', 'poolName', 'labels', 'taints'] as const

const differingFields = (before: WantedNode, after: WantedNode) =>
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
