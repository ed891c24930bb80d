import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { conditionOf, isTrue, textAt } from '../../../kubernetes/fields.ts'
import { readiness } from '../../../kubernetes/readiness.ts'

/** Why a node is not good at a version; undefined where it is. Pure. */
export function nodeTrouble(node: KubernetesObject, version: string): string | undefined {
  const { name } = node.metadata
  const ready = conditionOf(node, 'Ready')
  if (!ready || !isTrue(ready.status))
    return `the node ${name} is not Ready: ${ready?.message || 'it has not reported'}`
  const running = textAt(node, ['status', 'nodeInfo', 'kubeletVersion'])
  return running === `v${version}`
    ? undefined
    : `the kubelet of ${name} is ${running || 'of no version'}, not v${version}`
}

/** Why CoreDNS or kube-proxy is not available as it was applied last; undefined where it is. Pure. @param now milliseconds since 1970 */
export function workloadTrouble(object: KubernetesObject, now: number): string | undefined {
  const { status, message } = readiness(object, now)
  return status === 'Current' ? undefined : `${object.metadata.name}: ${message}`
}
