import type { Taint } from '../../wanted.ts'
import type { Configured } from './configured.ts'

/** What of a node of the API a patch depends on. */
export interface NodeObject {
  readonly metadata: { readonly resourceVersion: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: { readonly taints?: readonly NodeTaint[] }
}

interface NodeTaint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

export interface NodeWanted {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

/**
 * The merge patch (RFC 7396) that gives a node its labels and taints, and takes back those of before. Those that others have set stay, as
 * the taints of the node controller. Pure. @returns undefined where the node has all of it
 */
export function nodePatch(
  { metadata, spec }: NodeObject,
  { labels, taints }: NodeWanted,
  before: Pick<Configured, 'labels' | 'taints'>,
): object | undefined {
  const present = metadata.labels ?? {}
  const gone = before.labels.filter((name) => !Object.hasOwn(labels, name) && Object.hasOwn(present, name))
  const changed = Object.entries(labels).filter(([name, value]) => present[name] !== value)
  const is = (one: Pick<NodeTaint, 'key' | 'effect'>) => (other: Pick<NodeTaint, 'key' | 'effect'>) =>
    one.key === other.key && one.effect === other.effect
  const own = taints.map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect }))
  const presentTaints = spec?.taints ?? []
  const kept = presentTaints.filter((each) => !own.some(is(each)) && !before.taints.some(is(each)))
  const hasTaints =
    kept.length + own.length === presentTaints.length &&
    own.every((each) =>
      presentTaints.some((other) => is(each)(other) && (other.value ?? '') === (each.value ?? '')),
    )
  if (gone.length === 0 && changed.length === 0 && hasTaints) return undefined
  return {
    metadata: {
      // Refused where another client has changed the node since: a list of taints is replaced as a whole.
      resourceVersion: metadata.resourceVersion,
      labels: Object.fromEntries([...gone.map((name) => [name, null] as const), ...changed]),
    },
    ...(hasTaints ? {} : { spec: { taints: [...kept, ...own] } }),
  }
}
