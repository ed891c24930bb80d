import type { KubernetesClient, KubernetesObject } from '../../../kubernetes/client.ts'
import { fieldAt, textAt } from '../../../kubernetes/fields.ts'
import { isRecord } from '../../../base/json.ts'

/**
 * Whether a HorizontalPodAutoscaler decides how many replicas an object has, as kubernetes.io/docs/tasks/run-application, "Horizontal Pod
 * Autoscaling", says.
 */
export async function isAutoscaled(
  client: Pick<KubernetesClient, 'resourceOf' | 'list'>,
  { kind, metadata: { name, namespace } }: KubernetesObject,
  signal: AbortSignal,
): Promise<boolean> {
  const resource = await client.resourceOf('autoscaling/v2', 'HorizontalPodAutoscaler', signal)
  if (!resource || namespace === undefined) return false
  const found = await client.list(resource, { namespace, signal })
  return found.some((each) => {
    const target = fieldAt(each, ['spec', 'scaleTargetRef'])
    return textAt(target, ['kind']) === kind && textAt(target, ['name']) === name
  })
}

/** An object with as many replicas as another form of it has. */
export function withReplicasOf(wanted: KubernetesObject, { spec }: KubernetesObject): KubernetesObject {
  if (!isRecord(wanted.spec) || !isRecord(spec)) return wanted
  return { ...wanted, spec: { ...wanted.spec, replicas: spec.replicas } }
}
