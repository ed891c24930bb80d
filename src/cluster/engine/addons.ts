import type { KubernetesClient, Resource } from '../../kubernetes/client.ts'
import { nameOf } from '../../kubernetes/inventory.ts'
import { readiness } from '../../kubernetes/readiness.ts'
import { troubleOfPod } from '../packs/look-at-object.ts'
import type { Wanted } from '../wanted.ts'

const namespace = 'kube-system'
const apps = { group: 'apps', version: 'v1', isNamespaced: true }
const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true }

/** What kubeadm installs beside the control plane, and pods need as much; `kubeadm init phase addon`. */
const addons = [
  {
    resource: { ...apps, plural: 'deployments', kind: 'Deployment' },
    ...{ name: 'coredns', label: 'kube-dns', setting: 'hasCoreDns' as const },
  },
  {
    resource: { ...apps, plural: 'daemonsets', kind: 'DaemonSet' },
    ...{ name: 'kube-proxy', label: 'kube-proxy', setting: 'hasKubeProxy' as const },
  },
] as const

type Addon = (typeof addons)[number]

/**
 * Looks whether CoreDNS and kube-proxy run, where kubeadm installs them.
 * @returns what does not and why, in one line; empty if both do
 * @throws KubernetesError where the API server does not say
 */
export async function lookAtAddons(
  client: Pick<KubernetesClient, 'get' | 'list'>,
  { config }: Pick<Wanted['kubernetes'], 'config'>,
  signal: AbortSignal,
): Promise<string> {
  const found = await Promise.all(addons.map((addon) => lookAt(client, addon, config, signal)))
  return found.filter((each) => each !== '').join('; ')
}

async function lookAt(
  client: Pick<KubernetesClient, 'get' | 'list'>,
  { resource, name, label, setting }: Addon,
  config: string,
  signal: AbortSignal,
): Promise<string> {
  const object = await client.get(resource, { namespace, name }, signal)
  const shown = nameOf({ apiVersion: 'apps/v1', kind: resource.kind, namespace, name })
  if (!object) {
    // Only asked where it is missing, as where a pack brings another one: a look does not need yaml.
    const { kubernetesSettings } = await import('../host/kubernetes-settings.ts')
    return kubernetesSettings(config)[setting] ? `${shown} is missing` : ''
  }
  const { status, message } = readiness(object, Date.now())
  if (status === 'Current') return ''
  const failing = await client.list(pods, { namespace, labelSelector: `k8s-app=${label}`, signal })
  const why = failing.map(troubleOfPod).find((each) => each !== '')
  return `${shown}: ${message}${why === undefined ? '' : `; ${why}`}`
}
