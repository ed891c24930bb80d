import type { InventoryEntry } from './inventory.ts'
import { groupKindOf } from './paths.ts'

const rbac = 'rbac.authorization.k8s.io'

/** What kubeadm makes: group and kind, namespace, and name. */
const madeByKubeadm: ReadonlySet<string> = new Set([
  ...['kubeadm-config', 'kubelet-config', 'kube-proxy', 'coredns'].map(
    (name) => `/ConfigMap kube-system ${name}`,
  ),
  '/ConfigMap kube-public cluster-info',
  ...['kube-proxy', 'coredns'].map((name) => `/ServiceAccount kube-system ${name}`),
  ...['Role', 'RoleBinding'].map((kind) => `${rbac}/${kind} kube-system kube-proxy`),
  ...['ClusterRole', 'ClusterRoleBinding'].map((kind) => `${rbac}/${kind}  system:coredns`),
  'apps/Deployment kube-system coredns',
  'apps/DaemonSet kube-system kube-proxy',
  '/Service kube-system kube-dns',
])

/**
 * Whether Kubernetes itself needs an object, and does not make it again by itself: a cluster without it does not resolve names, does not
 * reach services, or cannot be upgraded. Pure.
 * @param labels of the stored object: packs have roles with names of Kubernetes too, as system:metrics-server
 */
export function isBuiltInObject(
  entry: InventoryEntry,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  const kind = groupKindOf(entry)
  if (kind.startsWith(`${rbac}/`))
    if (entry.name.startsWith('kubeadm:') || labels['kubernetes.io/bootstrapping'] === 'rbac-defaults')
      return true
  return madeByKubeadm.has([kind, entry.namespace ?? '', entry.name].join(' '))
}
