import type { DesiredKubernetes } from '../desired/desired-state.ts'
import { apiPort, mapAt, parsePackConfig, type PackConfig } from './pack-config.ts'
import { kubernetesFiles } from './paths.ts'

/** A setting of `cluster.config` that a cluster keeps for its life. */
export interface FixedSetting {
  /** Below `cluster.config`, for example `clusterConfiguration.networking.podSubnet`. */
  readonly path: string
  readonly before: string
  readonly after: string
}

/** The settings, and how each is read; defaults of kubeadm: kubeadm-config.v1beta4. */
const settings: Readonly<Record<string, (config: PackConfig) => unknown>> = {
  'clusterConfiguration.networking.podSubnet': (config) => networking(config).podSubnet,
  'clusterConfiguration.networking.serviceSubnet': (config) =>
    networking(config).serviceSubnet ?? '10.96.0.0/12',
  'clusterConfiguration.networking.dnsDomain': (config) => networking(config).dnsDomain ?? 'cluster.local',
  'clusterConfiguration.certificatesDir': certificatesFolder,
  'clusterConfiguration.etcd.external': ({ clusterConfiguration }) => {
    const { endpoints } = mapAt(clusterConfiguration, 'etcd', 'external')
    return Array.isArray(endpoints) ? endpoints.map(String).join(', ') : ''
  },
  'clusterConfiguration.etcd.local.dataDir': ({ clusterConfiguration }) =>
    mapAt(clusterConfiguration, 'etcd', 'local').dataDir ?? kubernetesFiles.etcd,
  'initConfiguration.localAPIEndpoint.bindPort': apiPort,
  'kubeletConfiguration.staticPodPath': ({ kubeletConfiguration }) =>
    kubeletConfiguration.staticPodPath ?? kubernetesFiles.manifests,
}

const textOf = (value: unknown) =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)

const networking = ({ clusterConfiguration }: PackConfig) => mapAt(clusterConfiguration, 'networking')

/** Folder of the certificates of the control plane. */
export function certificatesFolder({
  clusterConfiguration,
}: Pick<PackConfig, 'clusterConfiguration'>): string {
  const { certificatesDir } = clusterConfiguration
  return typeof certificatesDir === 'string' && certificatesDir !== ''
    ? certificatesDir
    : kubernetesFiles.certificates
}

/**
 * Differences of two Kubernetes packs that cannot be applied while there is a cluster: networks, places of data, the port. Pure.
 * @throws Error that names the unreadable part of one
 */
export const changedFixedSettings = (
  before: Pick<DesiredKubernetes, 'config'>,
  after: Pick<DesiredKubernetes, 'config'>,
): readonly FixedSetting[] => fixedSettingsBetween(parsePackConfig(before), parsePackConfig(after))

/** The same of parsed configurations. Pure. */
export const fixedSettingsBetween = (before: PackConfig, after: PackConfig): readonly FixedSetting[] =>
  Object.entries(settings)
    .map(([path, read]) => ({ path, before: textOf(read(before)), after: textOf(read(after)) }))
    .filter((each) => each.before !== each.after)

/** Why a change of it is refused. @param pack its name */
export const saidOfFixed = ({ path, before, after }: FixedSetting, pack: string): string =>
  `cluster.config.${path} of the pack ${pack} is ${JSON.stringify(before)}, and cannot be changed to ${JSON.stringify(after)}`
