import { isRecord, jsonForYaml } from '../../base/json.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import { criSocket } from './paths.ts'
import { controlPlaneEndpoint, documentsOf, mapAt, type PackConfig, type YamlMap } from './pack-config.ts'

// The files of kubeadm: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/
const kubeadmGroup = 'kubeadm.k8s.io'

/** Cluster data for kubeadm. */
export type DesiredKubeadm = Pick<DesiredState, 'name' | 'kubernetes' | 'node'>

/** An argument in the form v1beta4. */
interface Argument {
  readonly name: string
  readonly value: string
}

/**
 * The text that `kubeadm config migrate` has to turn into v1beta4; undefined where the pack brings that form. It has values that kubeadm
 * would otherwise look for on the host.
 */
export function configToMigrate(desired: DesiredKubeadm, config: PackConfig): string | undefined {
  if (!config.isV1beta3) return undefined
  const version = { apiVersion: `${kubeadmGroup}/v1beta3` }
  return documents([
    {
      ...config.initConfiguration,
      ...version,
      kind: 'InitConfiguration',
      localAPIEndpoint: endpointOf(desired, config.initConfiguration),
      nodeRegistration: {
        ...mapAt(config.initConfiguration, 'nodeRegistration'),
        name: desired.node.name,
        criSocket,
      },
    },
    {
      ...config.clusterConfiguration,
      ...version,
      kind: 'ClusterConfiguration',
      kubernetesVersion: `v${desired.kubernetes.version}`,
    },
  ])
}

/**
 * The file for `kubeadm init`, in v1beta4. Names, addresses, sockets, the cgroup driver and the version are ours; the rest is the pack's.
 * @param migrated result of `kubeadm config migrate` on `configToMigrate`
 */
export function kubeadmConfig(desired: DesiredKubeadm, config: PackConfig, migrated?: string): string {
  const { initConfiguration: init, clusterConfiguration: cluster } =
    migrated === undefined ? config : parseMigrated(migrated, config)
  const version = { apiVersion: `${kubeadmGroup}/v1beta4` }
  const { node } = desired
  const registration = mapAt(init, 'nodeRegistration')
  const apiServer = mapAt(cluster, 'apiServer')
  const names = Array.isArray(apiServer.certSANs) ? apiServer.certSANs.map(String) : []
  const nodeAddress = argumentsOf(registration.kubeletExtraArgs).some(({ name }) => name === 'node-ip')
    ? []
    : [{ name: 'node-ip', value: node.address }]
  return documents([
    {
      ...init,
      ...version,
      kind: 'InitConfiguration',
      localAPIEndpoint: endpointOf(desired, init),
      nodeRegistration: {
        ...registration,
        name: node.name,
        criSocket,
        taints: taintsOf(desired),
        kubeletExtraArgs: [
          ...argumentsWithout(registration.kubeletExtraArgs, [
            'hostname-override',
            'container-runtime-endpoint',
          ]),
          ...nodeAddress,
          // kubeadm itself gives it only where the host has another name at that moment.
          { name: 'hostname-override', value: node.name },
        ],
      },
    },
    {
      ...cluster,
      ...version,
      kind: 'ClusterConfiguration',
      clusterName: desired.name,
      kubernetesVersion: `v${desired.kubernetes.version}`,
      controlPlaneEndpoint: controlPlaneEndpoint(desired, config),
      apiServer: {
        ...apiServer,
        certSANs: [...new Set([...names, node.endpoint, node.address, node.name])],
        // The address of InitConfiguration; packs have 0.0.0.0 here.
        extraArgs: argumentsWithout(apiServer.extraArgs, ['advertise-address']),
      },
    },
    {
      ...shutdownTimes(config.kubeletConfiguration),
      ...config.kubeletConfiguration,
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      // As of containerd, and of every host with systemd.
      cgroupDriver: 'systemd',
    },
    {
      ...config.kubeProxyConfiguration,
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
    },
  ])
}

/** The name of the node. @param text of `kubeadmConfig` */
export function nodeNameIn(text: string): string {
  const values = documentsOf(text)
  const init = values.find(({ kind }) => kind === 'InitConfiguration') ?? {}
  return String(mapAt(init, 'nodeRegistration').name)
}

/** Whether a cluster has an address or a network of IPv6. @param text of `kubeadmConfig` */
export function usesIPv6(text: string): boolean {
  const values = documentsOf(text)
  const { podSubnet, serviceSubnet } = Object.assign(
    {},
    ...values.map((each) => mapAt(each, 'networking')),
  ) as YamlMap
  const addresses = values.map((each) => mapAt(each, 'localAPIEndpoint').advertiseAddress)
  return [podSubnet, serviceSubnet, ...addresses].some(
    (each) => typeof each === 'string' && each.includes(':'),
  )
}

/** JSON, which kubeadm reads as YAML: there, texts such as `no`, `y` and `1_0` have to be in quotes by rules of its own. */
const documents = (values: readonly YamlMap[]) =>
  values.map((value) => `${jsonForYaml(value, 2)}\n`).join('---\n')

/**
 * With logind, the kubelet delays a stop of the host and ends the pods: within 30 s, the default of terminationGracePeriodSeconds, and those of
 * the control plane in 15 s more. It raises the longest delay of logind by itself. Without logind it says so in the journal, and runs. A pack
 * that has settings of its own, or turns the feature off, keeps that: the kubelet refuses a mixture.
 */
function shutdownTimes(kubelet: YamlMap): YamlMap {
  const own = [
    'shutdownGracePeriod',
    'shutdownGracePeriodCriticalPods',
    'shutdownGracePeriodByPodPriority',
  ].some((name) => kubelet[name] !== undefined)
  const isOff = mapAt(kubelet, 'featureGates').GracefulNodeShutdown === false
  return own || isOff ? {} : { shutdownGracePeriod: '45s', shutdownGracePeriodCriticalPods: '15s' }
}

function endpointOf({ node }: DesiredKubeadm, init: YamlMap): YamlMap {
  return { ...mapAt(init, 'localAPIEndpoint'), advertiseAddress: node.address }
}

function taintsOf({ node }: DesiredKubeadm): readonly YamlMap[] {
  const controlPlane = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }
  const own = node.taints.map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect }))
  return node.runsWorkloads ? own : [controlPlane, ...own]
}

function argumentsOf(given: unknown): readonly Argument[] {
  return Array.isArray(given) ? (given as Argument[]).filter(isRecord) : []
}
const argumentsWithout = (given: unknown, names: readonly string[]) =>
  argumentsOf(given).filter(({ name }) => !names.includes(name))

function parseMigrated(text: string, { initConfiguration }: PackConfig) {
  const values = documentsOf(text)
  const ofKind = (kind: string) => values.find((each) => each.kind === kind) ?? {}
  return {
    // The migration makes a token of its own; without one, kubeadm makes it later.
    initConfiguration: {
      ...ofKind('InitConfiguration'),
      bootstrapTokens: initConfiguration.bootstrapTokens,
    },
    clusterConfiguration: ofKind('ClusterConfiguration'),
  }
}
