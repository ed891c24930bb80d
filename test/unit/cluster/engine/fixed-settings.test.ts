import { expect, test } from 'vitest'
import { changedFixedSettings } from '../../../../src/cluster/engine/pack-config.ts'

const changed = (before: string, after: string) =>
  changedFixedSettings({ config: before }, { config: after }).map(({ path }) => path)

const networks = (podSubnet: string, more = '') =>
  `clusterConfiguration:\n  networking: {podSubnet: ${podSubnet}}\n${more}`

test.each([
  ['the pod network', networks('10.244.0.0/16'), networks('10.245.0.0/16'), 'networking.podSubnet'],
  [
    'the service network',
    '{}',
    'clusterConfiguration: {networking: {serviceSubnet: 10.97.0.0/16}}',
    'networking.serviceSubnet',
  ],
  [
    'the DNS domain',
    '{}',
    'clusterConfiguration: {networking: {dnsDomain: plant.local}}',
    'networking.dnsDomain',
  ],
  [
    "etcd's folder",
    '{}',
    'clusterConfiguration: {etcd: {local: {dataDir: /srv/etcd}}}',
    'etcd.local.dataDir',
  ],
  [
    'another etcd',
    '{}',
    'clusterConfiguration: {etcd: {external: {endpoints: ["https://192.0.2.1:2379"]}}}',
    'etcd.external',
  ],
  [
    'the folder of the certificates',
    '{}',
    'clusterConfiguration: {certificatesDir: /srv/pki}',
    'certificatesDir',
  ],
])('refuses another value of %s', (_what, before, after, path) => {
  expect(changed(before, after)).toEqual([`clusterConfiguration.${path}`])
  expect(changed(after, before)).toEqual([`clusterConfiguration.${path}`])
})

test('refuses another port of the API server and another folder of static pods', () => {
  expect(changed('', 'initConfiguration: {localAPIEndpoint: {bindPort: 7443}}')).toEqual([
    'initConfiguration.localAPIEndpoint.bindPort',
  ])
  expect(changed('', 'kubeletConfiguration: {staticPodPath: /srv/manifests}')).toEqual([
    'kubeletConfiguration.staticPodPath',
  ])
})

test('names both values', () => {
  expect(changedFixedSettings({ config: '' }, { config: networks('10.9.0.0/16') })).toEqual([
    { path: 'clusterConfiguration.networking.podSubnet', before: '', after: '10.9.0.0/16' },
  ])
})

test('takes a value that kubeadm takes by itself for the same', () => {
  const written = `
clusterConfiguration:
  certificatesDir: /etc/kubernetes/pki
  etcd: {local: {dataDir: /var/lib/etcd}}
  networking: {serviceSubnet: 10.96.0.0/12, dnsDomain: cluster.local}
initConfiguration: {localAPIEndpoint: {bindPort: 6443}}
kubeletConfiguration: {staticPodPath: /etc/kubernetes/manifests}
`
  expect(changed('', written)).toEqual([])
})

test('lets arguments, names and sizes change', () => {
  const after = networks(
    '10.244.0.0/16',
    `  apiServer: {certSANs: [api.plant], extraArgs: [{name: profiling, value: "true"}]}
  etcd: {local: {extraArgs: [{name: snapshot-count, value: "5000"}]}}
kubeletConfiguration: {maxPods: 50}
kubeProxyConfiguration: {mode: ipvs}
`,
  )
  expect(changed(networks('10.244.0.0/16'), after)).toEqual([])
})
