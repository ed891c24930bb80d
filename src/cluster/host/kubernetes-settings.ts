import { isRecord } from '../../base/json.ts'
import { apiPort, mapAt, parsePackConfig, type PackConfig } from '../engine/pack-config.ts'
import { parseSubnet, type Subnet } from '../../base/subnet.ts'

/** Settings of the Kubernetes pack that concern the host. */
export interface KubernetesSettings {
  /** Networks of pods, two with IPv4 and IPv6; empty where the pack leaves them to the network plugin. */
  readonly pods: readonly Subnet[]
  readonly services: readonly Subnet[]
  readonly apiPort: number
  /** Port of the kubelet's health for kubeadm; 0: none. */
  readonly kubeletHealthPort: number
  /** Names of the checks of kubeadm whose errors it shall ignore, in lower case; `all` is every one. */
  readonly ignoredChecks: ReadonlySet<string>
  /** Whether the kubelet refuses a host with swap. */
  readonly failsOnSwap: boolean
  /** Whether the kubelet refuses control groups of version 1; undefined where the pack leaves it to the kubelet. */
  readonly failsOnCgroupV1: boolean | undefined
  /** Whether the kubelet refuses a host whose sysctls differ from `protectedSysctls`, instead of setting them. */
  readonly protectsKernelDefaults: boolean
  /** File from which the kubelet gives pods their name servers; undefined where the pack leaves it to kubeadm. */
  readonly resolvConf: string | undefined
  /** Whether kubeadm installs CoreDNS, and kube-proxy. */
  readonly hasCoreDns: boolean
  readonly hasKubeProxy: boolean
}

/** Default of kubeadm (kubeadm-config.v1beta4). */
const defaultServices = '10.96.0.0/12'
/** Default of the kubelet (kubelet-config.v1beta1). */
const defaultHealthPort = 10248

/**
 * Reads the settings. A text that cannot be read, or a value of another type, counts as not given: the engine reports it.
 * @param config `DesiredKubernetes.config`
 */
export const kubernetesSettings = (config: string): KubernetesSettings => settingsIn(parsed(config))

/** The same of a parsed pack. Pure. */
export function settingsIn(pack: PackConfig): KubernetesSettings {
  const networking = mapAt(pack.clusterConfiguration, 'networking')
  const subnets = (value: unknown) =>
    typeof value === 'string' ? value.split(',').flatMap((each) => parseSubnet(each) ?? []) : []
  const services = subnets(networking.serviceSubnet)
  const ignored = mapAt(pack.initConfiguration, 'nodeRegistration').ignorePreflightErrors
  const { failCgroupV1, failSwapOn, healthzPort, protectKernelDefaults, resolvConf } =
    pack.kubeletConfiguration
  // An argument of the kubelet wins over its file.
  const flag = (name: string, ofFile: unknown) => booleanOf(kubeletArgument(pack, name)) ?? ofFile
  const healthPort = Number(kubeletArgument(pack, 'healthz-port') ?? healthzPort ?? defaultHealthPort)
  const failsOnCgroupV1 = flag('fail-cgroupv1', failCgroupV1)
  const { skipPhases } = pack.initConfiguration
  const skipped = new Set(Array.isArray(skipPhases) ? skipPhases.map(String) : [])
  const has = (addon: 'dns' | 'proxy', phase: string) =>
    mapAt(pack.clusterConfiguration, addon).disabled !== true &&
    !['addon', 'addon/all', `addon/${phase}`].some((each) => skipped.has(each))
  return {
    pods: subnets(networking.podSubnet),
    services: services.length > 0 ? services : subnets(defaultServices),
    apiPort: apiPort(pack),
    kubeletHealthPort: Number.isInteger(healthPort) ? healthPort : defaultHealthPort,
    ignoredChecks: new Set(Array.isArray(ignored) ? ignored.map((each) => String(each).toLowerCase()) : []),
    failsOnSwap: flag('fail-swap-on', failSwapOn) !== false,
    protectsKernelDefaults: flag('protect-kernel-defaults', protectKernelDefaults) === true,
    failsOnCgroupV1: typeof failsOnCgroupV1 === 'boolean' ? failsOnCgroupV1 : undefined,
    resolvConf: textOf(kubeletArgument(pack, 'resolv-conf')) ?? textOf(resolvConf),
    hasCoreDns: has('dns', 'coredns'),
    hasKubeProxy: has('proxy', 'kube-proxy'),
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

/** As strconv.ParseBool of Go; undefined for other texts, with which the kubelet ends. */
function booleanOf(given: unknown): boolean | undefined {
  if (typeof given !== 'string' && typeof given !== 'boolean') return undefined
  if (/^(?:1|[tT]|true|True|TRUE)$/.test(String(given))) return true
  return /^(?:0|[fF]|false|False|FALSE)$/.test(String(given)) ? false : undefined
}

/** The value of an argument of the kubelet: v1beta4 has a list of arguments, v1beta3 a map. */
function kubeletArgument({ initConfiguration }: PackConfig, desired: string): unknown {
  const given = mapAt(initConfiguration, 'nodeRegistration').kubeletExtraArgs
  if (isRecord(given)) return given[desired]
  const list: readonly unknown[] = Array.isArray(given) ? given : []
  return list.filter(isRecord).findLast(({ name }) => name === desired)?.value
}

function parsed(config: string): PackConfig {
  try {
    return parsePackConfig({ config })
  } catch {
    return parsePackConfig({ config: '' })
  }
}
