import { setTimeout as delay } from 'node:timers/promises'
import { fieldAt, listAt, textAt } from '../../kubernetes/fields.ts'
import type { KubernetesClient, KubernetesObject } from '../../kubernetes/client.ts'
import type { Logger } from '../../system/log.ts'

/** On a node that edgehostd has cordoned before a stop of its host. */
const stoppingAnnotation = 'edgehostd/stopping'
/** kubernetes.io/docs/reference/labels-annotations-taints: of a static pod, which only the kubelet ends. */
const mirrorAnnotation = 'kubernetes.io/config.mirror'

interface NodeStopOptions {
  readonly client: Pick<KubernetesClient, 'resourceOf' | 'get' | 'list' | 'apply' | 'remove' | 'isReady'>
  /** The name of the node; undefined without a cluster. */
  readonly node: () => string | undefined
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Longest wait for the pods, milliseconds. */
  readonly patienceMs?: number
  readonly pauseMs?: number
}

/** The node before and after a stop of its host. */
export interface NodeStop {
  /**
   * Keeps new pods from the node, and ends those on it, each with its grace period, as `kubectl drain --ignore-daemonsets --disable-eviction`:
   * a PodDisruptionBudget cannot be kept where the only node goes. Where the API does not answer: nothing. Never throws.
   */
  drain(): Promise<void>
  /**
   * Admits pods again, and removes pods that a stop has ended and that have been made anew: they would be listed as failed for ever.
   * @returns false while the API does not answer
   */
  settle(): Promise<boolean>
}

/** Whether a drain ends a pod. Pods of a DaemonSet would be made anew at once. Pure. */
export function isDrained(pod: KubernetesObject): boolean {
  const owners = listAt(pod, ['metadata', 'ownerReferences'])
  return (
    pod.metadata.annotations?.[mirrorAnnotation] === undefined &&
    !owners.some((owner) => textAt(owner, ['kind']) === 'DaemonSet') &&
    !['Succeeded', 'Failed'].includes(textAt(pod, ['status', 'phase']))
  )
}

/** Their pods restart always, so that one that has ended well was ended by the kubelet. */
const restarting = ['ReplicaSet', 'StatefulSet', 'DaemonSet']

/**
 * Whether a pod is the remains of one that the kubelet has ended for a stop (pkg/kubelet/nodeshutdown of Kubernetes), and its controller has
 * made another. One of a Job stays, which counts its pods, and one without a controller: what it says is all that is left of it. Pure.
 */
export function isRemains(pod: KubernetesObject): boolean {
  const phase = textAt(pod, ['status', 'phase'])
  const isEnded =
    phase === 'Succeeded' || (phase === 'Failed' && textAt(pod, ['status', 'reason']) === 'Terminated')
  return (
    isEnded &&
    pod.metadata.annotations?.[mirrorAnnotation] === undefined &&
    listAt(pod, ['metadata', 'ownerReferences']).some(
      (owner) => owner.controller === true && restarting.includes(textAt(owner, ['kind'])),
    )
  )
}

const requestMs = 10_000

export function createNodeStop(options: NodeStopOptions): NodeStop {
  const { client, node, log, patienceMs = 60_000, pauseMs = 500 } = options
  const signal = () => AbortSignal.timeout(requestMs)

  async function podsOf(name: string) {
    const pods = await client.resourceOf('v1', 'Pod', signal())
    if (!pods) throw new Error('the API server knows no pods')
    const list = () => client.list(pods, { fieldSelector: `spec.nodeName=${name}`, signal: signal() })
    return { pods, list }
  }

  /** @param isStopping false gives up the fields of ours: one that an administrator has set stays */
  async function cordon(name: string, isStopping: boolean): Promise<void> {
    const nodes = await client.resourceOf('v1', 'Node', signal())
    if (!nodes) throw new Error('the API server knows no nodes')
    const head = { apiVersion: 'v1', kind: 'Node' }
    await client.apply(
      nodes,
      isStopping
        ? {
            ...head,
            metadata: { name, annotations: { [stoppingAnnotation]: 'true' } },
            spec: { unschedulable: true },
          }
        : { ...head, metadata: { name } },
      signal(),
    )
  }

  async function endPods(name: string): Promise<number> {
    const { pods, list } = await podsOf(name)
    const until = performance.now() + patienceMs
    const ended = new Set<string>()
    for (;;) {
      const left = (await list()).filter(isDrained)
      for (const pod of left) {
        const { name: podName, namespace = '', uid = podName } = pod.metadata
        if (ended.has(uid)) continue
        ended.add(uid)
        if (pod.metadata.deletionTimestamp === undefined)
          await client.remove(pods, { name: podName, namespace }, signal())
      }
      if (left.length === 0) return ended.size
      if (performance.now() > until)
        throw new Error(
          `${left.length} pods have not ended within ${Math.round(patienceMs / 1_000)} s, among them ${left[0]?.metadata.name ?? ''}`,
        )
      await delay(pauseMs)
    }
  }

  return {
    async drain() {
      const name = node()
      if (name === undefined) return
      try {
        if (!(await client.isReady(signal()))) throw new Error('the API server does not answer')
        await cordon(name, true)
        log.info({ pods: await endPods(name) }, 'the pods of this host have ended before its stop')
      } catch (error) {
        log.warn({ err: error }, 'the pods of this host are not all ended before its stop; systemd ends them')
      }
    },
    async settle() {
      const name = node()
      if (name === undefined) return true
      if (!(await client.isReady(signal()))) return false
      const nodes = await client.resourceOf('v1', 'Node', signal())
      const found = nodes && (await client.get(nodes, { name }, signal()))
      if (fieldAt(found, ['metadata', 'annotations', stoppingAnnotation]) !== undefined)
        await cordon(name, false)
      const { pods, list } = await podsOf(name)
      for (const { metadata } of (await list()).filter(isRemains))
        await client.remove(pods, { name: metadata.name, namespace: metadata.namespace ?? '' }, signal())
      return true
    },
  }
}
