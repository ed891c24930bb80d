import type { KubernetesClient, KubernetesObject, Resource } from '../../kubernetes/client.ts'
import { conditionOf, isTrue, numberAt, textAt } from '../../kubernetes/fields.ts'
import { podResource } from '../../kubernetes/paths.ts'
import type { Trouble } from '../loop/observed.ts'

/**
 * Deletes the pods in trouble that their StatefulSet does not replace: with ordered pods it waits until each is ready before the next, also for
 * one of a former template, which never is. kubernetes.io/docs/concepts/workloads/controllers/statefulset, "Forced rollback".
 * @param troubles of the pods of packs that are not available
 * @returns what was deleted, for operators
 * @throws KubernetesError
 */
export async function replaceFormerPods(
  client: Pick<KubernetesClient, 'get' | 'remove'>,
  troubles: readonly Trouble[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const pods = new Map(troubles.map((each) => [`${each.namespace}/${each.pod}`, each]))
  const replaced: string[] = []
  for (const { namespace, pod: name, workload = '' } of pods.values()) {
    const [kind, owner = ''] = workload.split('/')
    if (kind !== 'StatefulSet') continue
    const [set, pod] = await Promise.all([
      client.get(statefulSetResource, { namespace, name: owner }, signal),
      client.get(podResource, { namespace, name }, signal),
    ])
    if (!set || !pod || !isFormerPod(set, pod)) continue
    await client.remove(podResource, { namespace, name }, signal)
    replaced.push(
      `Pod ${namespace}/${name}: it is of a former revision of its StatefulSet, does not run, and holds up the present one; it is deleted, and made anew`,
    )
  }
  return replaced
}

/** Whether a pod that is not ready keeps its StatefulSet from making it anew by the present template. Pure. */
export function isFormerPod(set: KubernetesObject, pod: KubernetesObject): boolean {
  const present = textAt(set, ['status', 'updateRevision'])
  const isSeen = numberAt(set, ['status', 'observedGeneration']) === set.metadata.generation
  const isOrdered = textAt(set, ['spec', 'podManagementPolicy']) !== 'Parallel'
  const isRolled = textAt(set, ['spec', 'updateStrategy', 'type']) !== 'OnDelete'
  // Pods below a partition stay of the former revision.
  const partition = numberAt(set, ['spec', 'updateStrategy', 'rollingUpdate', 'partition']) ?? 0
  const own = pod.metadata.labels?.['controller-revision-hash'] ?? present
  return (
    isSeen &&
    isOrdered &&
    isRolled &&
    present !== '' &&
    own !== present &&
    Number(/\d+$/.exec(pod.metadata.name)?.[0] ?? 0) >= partition &&
    pod.metadata.deletionTimestamp === undefined &&
    !isTrue(conditionOf(pod, 'Ready')?.status ?? '')
  )
}

const statefulSetResource: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
  isNamespaced: true,
}
