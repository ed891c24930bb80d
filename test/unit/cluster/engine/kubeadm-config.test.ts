import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import {
  configToMigrate,
  kubeadmConfig,
  usesIPv6,
  type DesiredKubeadm,
} from '../../../../src/cluster/engine/kubeadm-config.ts'
import { parsePackConfig } from '../../../../src/cluster/engine/pack-config.ts'

const wantedOf = (config: string, node: Partial<DesiredKubeadm['node']> = {}): DesiredKubeadm => ({
  name: 'plant',
  kubernetes: { pack: 'edge-k8s', version: '1.34.4', config, stages: [] },
  node: {
    ...{ name: 'edge-1', address: '192.0.2.7', endpoint: '192.0.2.9', poolName: 'control' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
    ...node,
  },
})
const parseAll = (text: string) =>
  parseAllDocuments(text).map((each) => each.toJS() as Readonly<Record<string, unknown>>)

function made(config: string, node?: Partial<DesiredKubeadm['node']>) {
  const wanted = wantedOf(config, node)
  const values = parseAll(kubeadmConfig(wanted, parsePackConfig(wanted.kubernetes)))
  const [init, cluster, kubelet, proxy] = values
  return { init, cluster, kubelet, proxy, kinds: values.map(({ kind }) => kind) }
}

it('a pack without a configuration gets names, addresses, the socket, the version and the cgroup driver', () => {
  const { init, cluster, kubelet, kinds } = made('')
  expect(kinds).toEqual([
    'InitConfiguration',
    'ClusterConfiguration',
    'KubeletConfiguration',
    'KubeProxyConfiguration',
  ])
  expect(init).toMatchObject({
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    localAPIEndpoint: { advertiseAddress: '192.0.2.7' },
    nodeRegistration: {
      name: 'edge-1',
      criSocket: 'unix:///run/edgehostd-containerd/containerd.sock',
      taints: [],
      kubeletExtraArgs: [
        { name: 'node-ip', value: '192.0.2.7' },
        { name: 'hostname-override', value: 'edge-1' },
      ],
    },
  })
  expect(cluster).toMatchObject({
    clusterName: 'plant',
    kubernetesVersion: 'v1.34.4',
    controlPlaneEndpoint: '192.0.2.9:6443',
    apiServer: { certSANs: ['192.0.2.9', '192.0.2.7', 'edge-1'] },
  })
  expect(kubelet).toMatchObject({ cgroupDriver: 'systemd' })
})

it('pods get 30 s of a stop of the host, and the control plane 15 s', () => {
  expect(made('').kubelet).toMatchObject({
    shutdownGracePeriod: '45s',
    shutdownGracePeriodCriticalPods: '15s',
  })
})

it.each([
  ['a period', 'shutdownGracePeriod: 2m'],
  ['a period of critical pods', 'shutdownGracePeriodCriticalPods: 5s'],
  ['periods by priority', 'shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 9}]'],
  ['the feature turned off', 'featureGates: {GracefulNodeShutdown: false}'],
])('a pack that has %s for a stop of the host has that alone', (_what, line) => {
  const { kubelet } = made(`kubeletConfiguration:\n  ${line}\n`)
  const own = Object.keys(kubelet ?? {}).filter((name) => /shutdown|featureGates/.test(name))
  expect(own).toEqual([line.slice(0, line.indexOf(':'))])
})

it('what the pack says stays, but for what is of this host', () => {
  const { init, cluster, kubelet, proxy } = made(`
clusterConfiguration:
  clusterName: other
  kubernetesVersion: v1.2.3
  controlPlaneEndpoint: elsewhere:1
  imageRepository: registry.example/k8s
  networking: {podSubnet: 10.9.0.0/16, serviceSubnet: 10.8.0.0/16}
  apiServer:
    certSANs: [api.example, 192.0.2.7]
    extraArgs:
    - {name: advertise-address, value: 0.0.0.0}
    - {name: v, value: "3"}
initConfiguration:
  localAPIEndpoint: {advertiseAddress: 203.0.113.1, bindPort: 7443}
  skipPhases: [addon/kube-proxy]
  nodeRegistration:
    name: other
    ignorePreflightErrors: [Swap]
    kubeletExtraArgs:
    - {name: hostname-override, value: other}
    - {name: node-ip, value: 192.0.2.8}
kubeletConfiguration: {maxPods: 42, cgroupDriver: cgroupfs}
kubeProxyConfiguration: {mode: nftables}
`)
  expect(cluster).toMatchObject({
    clusterName: 'plant',
    kubernetesVersion: 'v1.34.4',
    controlPlaneEndpoint: '192.0.2.9:7443',
    imageRepository: 'registry.example/k8s',
    networking: { podSubnet: '10.9.0.0/16', serviceSubnet: '10.8.0.0/16' },
    apiServer: {
      certSANs: ['api.example', '192.0.2.7', '192.0.2.9', 'edge-1'],
      extraArgs: [{ name: 'v', value: '3' }],
    },
  })
  expect(init).toMatchObject({
    localAPIEndpoint: { advertiseAddress: '192.0.2.7', bindPort: 7443 },
    skipPhases: ['addon/kube-proxy'],
    nodeRegistration: {
      name: 'edge-1',
      ignorePreflightErrors: ['Swap'],
      kubeletExtraArgs: [
        { name: 'node-ip', value: '192.0.2.8' },
        { name: 'hostname-override', value: 'edge-1' },
      ],
    },
  })
  expect(kubelet).toMatchObject({ maxPods: 42, cgroupDriver: 'systemd' })
  expect(proxy).toMatchObject({ mode: 'nftables' })
})

it('a node that runs no workloads has the taint of a control plane, and its own', () => {
  const { init } = made('', {
    runsWorkloads: false,
    taints: [{ key: 'role', value: '', effect: 'NoExecute' }],
  })
  expect(init).toMatchObject({
    nodeRegistration: {
      taints: [
        { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' },
        { key: 'role', effect: 'NoExecute' },
      ],
    },
  })
})

it('an IPv6 endpoint has brackets', () => {
  expect(made('', { endpoint: '2001:db8::9' }).cluster).toMatchObject({
    controlPlaneEndpoint: '[2001:db8::9]:6443',
  })
})

it.each([
  ['', {}, false],
  ['clusterConfiguration: {networking: {podSubnet: 10.9.0.0/16, dnsDomain: "a:b"}}', {}, false],
  ['clusterConfiguration: {networking: {podSubnet: "10.9.0.0/16,fd00::/56"}}', {}, true],
  ['clusterConfiguration: {networking: {serviceSubnet: "fd01::/112"}}', {}, true],
  ['', { address: '2001:db8::7' }, true],
])('a cluster of %j at %j uses IPv6: %j', (config, node, expected) => {
  const wanted = wantedOf(config, node)
  expect(usesIPv6(kubeadmConfig(wanted, parsePackConfig(wanted.kubernetes)))).toBe(expected)
})

const old = `
clusterConfiguration:
  apiServer: {extraArgs: {advertise-address: 0.0.0.0, audit-log-maxage: "30"}, timeoutForControlPlane: 10m0s}
initConfiguration:
  nodeRegistration: {kubeletExtraArgs: {v: "2"}}
`

it.each([
  ['arguments as a map', old, true],
  ['its version', 'clusterConfiguration: {apiVersion: kubeadm.k8s.io/v1beta3}', true],
  ['a time limit of the API server', 'clusterConfiguration: {apiServer: {timeoutForControlPlane: 1m}}', true],
  ['arguments as a list', 'clusterConfiguration: {scheduler: {extraArgs: [{name: v, value: "1"}]}}', false],
  ['nothing', '', false],
])('the form v1beta3 or v1beta4 is seen by %s', (_name, config, isOld) => {
  expect(parsePackConfig({ config }).isV1beta3).toBe(isOld)
})

it('the text for a migration has what kubeadm would look for on the host', () => {
  const wanted = wantedOf(old)
  const [init, cluster] = parseAll(configToMigrate(wanted, parsePackConfig(wanted.kubernetes)) ?? '')
  expect(init).toMatchObject({
    apiVersion: 'kubeadm.k8s.io/v1beta3',
    localAPIEndpoint: { advertiseAddress: '192.0.2.7' },
    nodeRegistration: { name: 'edge-1', kubeletExtraArgs: { v: '2' } },
  })
  expect(cluster).toMatchObject({ kubernetesVersion: 'v1.34.4' })
})

it.each([
  ['a: [', 'it is not valid YAML'],
  ['- a', 'it is not a map of YAML'],
  ['kubeletConfiguration: yes please', 'kubeletConfiguration is not a map of YAML'],
  ['joinConfiguration: [1]', 'joinConfiguration is not a map of YAML'],
])('the configuration %j is refused with its reason', (config, reason) => {
  expect(() => parsePackConfig({ config })).toThrow(reason)
})
