import { groupKindOf, groupOf, type Typed } from './paths.ts'

/** Whether objects of other kinds may be of the kind that this one defines. */
export const isDefinition = (object: Typed): boolean =>
  groupKindOf(object) === 'apiextensions.k8s.io/CustomResourceDefinition'

// What the objects of other kinds need or are checked by when they are made. The order among these does not matter.
const needed = new Set([
  ...['/ServiceAccount', '/ConfigMap', '/Secret', '/ResourceQuota', '/LimitRange', '/PersistentVolume'],
  ...['scheduling.k8s.io/PriorityClass', 'storage.k8s.io/StorageClass', 'node.k8s.io/RuntimeClass'],
  ...['networking.k8s.io/IngressClass', '/PersistentVolumeClaim', '/Service'],
  ...['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding'].map(
    (kind) => `rbac.authorization.k8s.io/${kind}`,
  ),
])
/** Whether an object makes others depend on a workload, which may not run yet. */
export const isCheck = (object: Typed): boolean =>
  groupOf(object.apiVersion) === 'admissionregistration.k8s.io' &&
  object.kind.endsWith('WebhookConfiguration')

/** In which order the objects of a set are applied, those with the lowest rank first; they are deleted in the opposite order. */
export function rankOf(object: Typed): number {
  const kind = groupKindOf(object)
  if (isDefinition(object)) return 0
  if (kind === '/Namespace') return 1
  if (needed.has(kind)) return 2
  return isCheck(object) ? 4 : 3
}
