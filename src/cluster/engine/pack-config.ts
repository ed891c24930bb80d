import { addressWithPort } from '../../base/address.ts'
import { isRecord } from '../../base/json.ts'
import { readPlain } from '../../definition/rules/plain-values.ts'
import type { DesiredState, DesiredKubernetes } from '../desired/desired-state.ts'

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
