import { jsonForYaml } from '../../../base/json.ts'
import { documentsOf, mapAt } from '../pack-config.ts'
import { kubernetesFiles } from '../paths.ts'

/** What of the file for `kubeadm init` an upgrade needs to know. */
export interface InitFile {
  /** Data folder of etcd; undefined where an etcd outside of the cluster is used. */
  readonly etcd: string | undefined
  /** Folder with patches of the pack for the manifests of kubeadm. */
  readonly patches: string | undefined
}

/** @param text of the file for `kubeadm init`. Pure. */
export function readInitFile(text: string): InitFile {
  const documents = documentsOf(text)
  const ofKind = (kind: string) => documents.find((each) => each.kind === kind) ?? {}
  const cluster = ofKind('ClusterConfiguration')
  const textAt = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const { endpoints } = mapAt(cluster, 'etcd', 'external')
  return {
    etcd: endpoints ? undefined : (textAt(mapAt(cluster, 'etcd', 'local').dataDir) ?? kubernetesFiles.etcd),
    patches: textAt(mapAt(ofKind('InitConfiguration'), 'patches').directory),
  }
}

/**
 * The file for `kubeadm upgrade`: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/#kubeadm-k8s-io-v1beta4-UpgradeConfiguration
 * The configuration of the cluster itself kubeadm reads from the cluster. Pure.
 */
export function upgradeConfiguration(version: string, { patches }: Pick<InitFile, 'patches'>): string {
  const kubernetesVersion = `v${version}`
  // JSON: kubeadm reads it as YAML.
  return `${jsonForYaml(
    {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'UpgradeConfiguration',
      apply: {
        ...{
          kubernetesVersion,
          certificateRenewal: true,
          etcdUpgrade: true,
          imagePullPolicy: 'IfNotPresent',
        },
        ...(patches === undefined ? {} : { patches: { directory: patches } }),
      },
      plan: { kubernetesVersion, etcdUpgrade: true },
    },
    2,
  )}\n`
}
