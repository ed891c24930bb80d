import { shownPack } from '../wanted.ts'
import type { ClusterDiff, Effect, PackChange } from './schemas.ts'

/** What is done for a change, in the order in which it is done, and what restarts. Pure. */
export function effectsOf({
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
      ...{ target: 'kubernetes', restarts },
      message:
        'the configuration of Kubernetes changes: of the control plane, the kubelet and kube-proxy restart those that it concerns; workloads keep running',
    }
  const more = configurationChanged ? ', with another configuration' : ''
  return {
    ...{ target: 'kubernetes', restarts: ['etcd', ...restarts, 'kube-proxy', 'CoreDNS'] },
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
  ...{ target: 'pack', pack: id, restarts },
  message: `${shownPack(id)} ${what}`,
})

const ofHost = (restarts: string[], message: string): Effect => ({ target: 'host', restarts, message })

const count = (items: readonly unknown[], noun: string) =>
  `${items.length === 0 ? 'no' : items.length} ${noun}${items.length === 1 ? '' : 's'}`
