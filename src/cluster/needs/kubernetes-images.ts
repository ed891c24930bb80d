import { mapAt, parsePackConfig, type YamlMap } from '../engine/pack-config.ts'
import type { DesiredKubernetes } from '../desired/desired-state.ts'

/** Versions of what kubeadm installs beside Kubernetes itself. */
interface Companions {
  readonly coredns: string
  readonly pause: string
  readonly etcd: string
}

/**
 * Releases of Kubernetes: minor version of 1, first and last patch, and what kubeadm of these installs; the first row is the newest. They
 * change within a minor version too. Sources: `kubeadm config images list` of 1.34.4 and 1.33.13, to which a test holds the table, and the
 * lists of all released kubeadm that minikube keeps (pkg/minikube/constants/constants_kubeadm_images.go).
 */
const releases: readonly (readonly [minor: number, first: number, last: number, Companions])[] = [
  [37, 0, 1, { coredns: 'v1.14.6', pause: '3.10.2', etcd: '3.7.0-0' }],
  [36, 0, 5, { coredns: 'v1.14.2', pause: '3.10.2', etcd: '3.6.8-0' }],
  [35, 0, 9, { coredns: 'v1.13.1', pause: '3.10.1', etcd: '3.6.6-0' }],
  [34, 2, 12, { coredns: 'v1.12.1', pause: '3.10.1', etcd: '3.6.5-0' }],
  [34, 0, 1, { coredns: 'v1.12.1', pause: '3.10.1', etcd: '3.6.4-0' }],
  [33, 6, 13, { coredns: 'v1.12.0', pause: '3.10', etcd: '3.5.24-0' }],
  [33, 0, 5, { coredns: 'v1.12.0', pause: '3.10', etcd: '3.5.21-0' }],
  [32, 10, 13, { coredns: 'v1.11.3', pause: '3.10', etcd: '3.5.24-0' }],
  [32, 0, 9, { coredns: 'v1.11.3', pause: '3.10', etcd: '3.5.16-0' }],
  [31, 14, 14, { coredns: 'v1.11.3', pause: '3.10', etcd: '3.5.24-0' }],
  [31, 1, 13, { coredns: 'v1.11.3', pause: '3.10', etcd: '3.5.15-0' }],
  [31, 0, 0, { coredns: 'v1.11.1', pause: '3.10', etcd: '3.5.15-0' }],
]

/** An image of Kubernetes itself. */
export interface KubernetesImage {
  /** Without a tag where that is not known. */
  readonly image: string
  readonly isTagKnown: boolean
}

const companionsOf = (version: string): Companions | undefined => {
  const [, minor, patch] = (/^1\.(\d+)\.(\d+)$/.exec(version) ?? []).map(Number)
  if (minor === undefined || patch === undefined) return undefined
  return releases.find(([of, first, last]) => of === minor && first <= patch && patch <= last)?.[3]
}

const textAt = (map: YamlMap, name: string): string | undefined => {
  const value = map[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

const defaultRepository = 'registry.k8s.io'

/** `clusterConfiguration` of a pack; empty where it cannot be read, which the pre-flight reports. */
function clusterConfigurationOf(kubernetes: Pick<DesiredKubernetes, 'config'>): YamlMap {
  try {
    return parsePackConfig(kubernetes).clusterConfiguration
  } catch {
    return {}
  }
}

/**
 * The images that kubeadm of a version installs, without that kubeadm: what `kubeadm config images list` prints, with the repositories
 * and tags that the Kubernetes pack sets. Pure. Source: cmd/kubeadm/app/images/images.go of Kubernetes.
 * @returns images without a tag where the version is not in the table
 */
export function kubernetesImages(
  kubernetes: Pick<DesiredKubernetes, 'version' | 'config'>,
): readonly KubernetesImage[] {
  const cluster = clusterConfigurationOf(kubernetes)
  const { version } = kubernetes
  const companions = companionsOf(version)
  const repository = textAt(cluster, 'imageRepository') ?? defaultRepository
  const of = (prefix: string, name: string, tag: string | undefined): KubernetesImage => ({
    image: `${prefix}/${name}${tag === undefined ? '' : `:${tag}`}`,
    isTagKnown: tag !== undefined,
  })
  const [dns, proxy] = [mapAt(cluster, 'dns'), mapAt(cluster, 'proxy')]
  const etcd = mapAt(cluster, 'etcd', 'local')
  const isEtcdElsewhere = mapAt(cluster, 'etcd').external !== undefined
  const dnsRepository = textAt(dns, 'imageRepository') ?? repository
  const own = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
  return [
    ...[...own, ...(proxy.disabled === true ? [] : ['kube-proxy'])].map((name) =>
      of(repository, name, `v${version}`),
    ),
    ...(dns.disabled === true
      ? []
      : [
          of(
            // The official image has a repository of its own.
            dnsRepository === defaultRepository ? `${dnsRepository}/coredns` : dnsRepository,
            'coredns',
            textAt(dns, 'imageTag') ?? companions?.coredns,
          ),
        ]),
    of(repository, 'pause', companions?.pause),
    ...(isEtcdElsewhere
      ? []
      : [
          of(
            textAt(etcd, 'imageRepository') ?? repository,
            'etcd',
            textAt(etcd, 'imageTag') ?? companions?.etcd,
          ),
        ]),
  ]
}
