import { addressWithPort } from '../../base/address.ts'
import { isRecord } from '../../base/json.ts'
import { readPlain } from '../../definition/rules/plain-values.ts'
import type { DesiredState, DesiredKubernetes } from '../desired/desired-state.ts'
import { kubernetesFiles } from './paths.ts'

export type YamlMap = Readonly<Record<string, unknown>>

/** The text `cluster.config` of a Kubernetes pack, by the kinds of kubeadm and of the components. */
export interface PackConfig {
  readonly initConfiguration: YamlMap
  readonly clusterConfiguration: YamlMap
  readonly kubeletConfiguration: YamlMap
  readonly kubeProxyConfiguration: YamlMap
  /** Whether the two of kubeadm are in the form v1beta3: arguments are maps. */
  readonly isV1beta3: boolean
}

const parts = [
  'initConfiguration',
  'clusterConfiguration',
  'kubeletConfiguration',
  'kubeProxyConfiguration',
  'joinConfiguration',
] as const

/** The port of the API server where the pack names none. */
const usualPort = 6443

/** A map at a path; empty where there is none. */
export function mapAt(value: YamlMap, ...path: readonly string[]): YamlMap {
  const found = path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value)
  return isRecord(found) ? found : {}
}

/** The documents of a file for kubeadm, or of its output, as kubeadm reads them. An unreadable text has none. */
export const documentsOf = (text: string): readonly YamlMap[] =>
  readPlain(text).documents.filter((each) => isRecord(each))

/**
 * Reads it as kubeadm and the kubelet do: `no` and `off` are false, `0x1A2B` is 6699.
 * @throws Error that names the part and its problem
 */
export function parsePackConfig({ config }: Pick<DesiredKubernetes, 'config'>): PackConfig {
  const { documents, problems } = readPlain(config)
  const [problem] = problems
  if (problem !== undefined) throw new Error(`it ${problem}`)
  if (documents.length > 1) throw new Error('it is several documents of YAML')
  return toPackConfig(documents[0] ?? {})
}

/**
 * The same of a parsed text. Pure.
 * @throws Error that names the part that is not a map
 */
export function toPackConfig(value: unknown): PackConfig {
  if (!isRecord(value)) throw new Error('it is not a map of YAML')
  const part = (name: (typeof parts)[number]): YamlMap => {
    const given = value[name] ?? {}
    if (!isRecord(given)) throw new Error(`${name} is not a map of YAML`)
    return given
  }
  for (const name of parts) part(name)
  const [initConfiguration, clusterConfiguration] = [part('initConfiguration'), part('clusterConfiguration')]
  return {
    initConfiguration,
    clusterConfiguration,
    kubeletConfiguration: part('kubeletConfiguration'),
    kubeProxyConfiguration: part('kubeProxyConfiguration'),
    isV1beta3: [initConfiguration, clusterConfiguration].some(isV1beta3),
  }
}

/** The forms differ only in these fields, kubeadm-config.v1beta4; a part that has none of them is the same in both. */
function isV1beta3(configuration: YamlMap): boolean {
  if (typeof configuration.apiVersion === 'string') return configuration.apiVersion.endsWith('/v1beta3')
  const argumentsOf = [
    mapAt(configuration, 'apiServer').extraArgs,
    mapAt(configuration, 'controllerManager').extraArgs,
    mapAt(configuration, 'scheduler').extraArgs,
    mapAt(configuration, 'etcd', 'local').extraArgs,
    mapAt(configuration, 'nodeRegistration').kubeletExtraArgs,
  ]
  return argumentsOf.some(isRecord) || mapAt(configuration, 'apiServer').timeoutForControlPlane !== undefined
}

/** The port of the API server. */
export function apiPort({ initConfiguration }: PackConfig): number {
  const { bindPort } = mapAt(initConfiguration, 'localAPIEndpoint')
  return typeof bindPort === 'number' && bindPort > 0 ? bindPort : usualPort
}

/** `controlPlaneEndpoint` of kubeadm. */
export const controlPlaneEndpoint = ({ node }: Pick<DesiredState, 'node'>, config: PackConfig): string =>
  addressWithPort(node.endpoint, apiPort(config))

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
