import { conditionsOf } from '../../../kubernetes/fields.ts'
import type { KubernetesObject } from '../../../kubernetes/client.ts'

interface NodeStatus {
  readonly nodeInfo?: { readonly kubeletVersion?: string }
}

/** Why a node is not good at a version; undefined where it is. Pure. */
export function nodeTrouble(node: KubernetesObject, version: string): string | undefined {
  const { name } = node.metadata
  const ready = conditionsOf(node).find(({ type }) => type === 'Ready')
  const { nodeInfo } = (node.status ?? {}) as NodeStatus
  if (ready?.status !== 'True')
    return `the node ${name} is not Ready: ${ready?.message ?? 'it has not reported'}`
  return nodeInfo?.kubeletVersion === `v${version}`
    ? undefined
    : `the kubelet of ${name} is ${nodeInfo?.kubeletVersion ?? 'of no version'}, not v${version}`
}

interface WorkloadStatus {
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly updatedReplicas?: number
  readonly availableReplicas?: number
  readonly desiredNumberScheduled?: number
  readonly updatedNumberScheduled?: number
  readonly numberAvailable?: number
}

/** Why CoreDNS, a Deployment, or kube-proxy, a DaemonSet, is not available as it was applied last; undefined where it is. Pure. */
export function workloadTrouble(object: KubernetesObject): string | undefined {
  const status = (object.status ?? {}) as WorkloadStatus
  const { name, generation = 0 } = object.metadata as { readonly name: string; readonly generation?: number }
  if ((status.observedGeneration ?? 0) < generation) return `${name} is not rolled out yet`
  const isDaemonSet = object.kind === 'DaemonSet'
  const wanted = isDaemonSet
    ? (status.desiredNumberScheduled ?? 0)
    : ((object as { readonly spec?: { readonly replicas?: number } }).spec?.replicas ?? 1)
  const updated = (isDaemonSet ? status.updatedNumberScheduled : status.updatedReplicas) ?? 0
  const available = (isDaemonSet ? status.numberAvailable : status.availableReplicas) ?? 0
  return updated >= wanted && available >= wanted
    ? undefined
    : `${name}: ${available} of ${wanted} pods are available, ${updated} of them new`
}
