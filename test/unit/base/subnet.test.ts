import { expect, it } from 'vitest'
import { kubernetesSettings } from '../../../src/cluster/host/kubernetes-settings.ts'
import {
  isInSubnet,
  networkOf,
  overlap,
  parseSubnet,
  prefixLengthOf,
  spellSubnet,
} from '../../../src/base/subnet.ts'

const subnet = (text: string) => parseSubnet(text)!

it.each(['10.0.0.0', '10.0.0.0/33', '10.0.0/8', 'fd00::/129', '/8', '10.0.0.0/x', 'fe80::%eth0/64'])(
  '%s is no network',
  (text) => {
    expect(parseSubnet(text)).toBeUndefined()
  },
)

it.each([
  ['10.0.0.0/8', '10.244.0.0/16', true],
  ['10.244.0.0/16', '10.0.0.0/8', true],
  ['10.244.0.0/16', '10.245.0.0/16', false],
  ['10.244.0.0/16', 'fd00::/8', false],
  ['fd00::/8', 'fd12:3456::/48', true],
  ['0.0.0.0/0', '10.1.0.0/16', true],
])('%s and %s have addresses in common: %s', (one, other, expected) => {
  expect(overlap(subnet(one), subnet(other))).toBe(expected)
})

it('an address of the other family is in no network', () => {
  expect(isInSubnet('::1', subnet('0.0.0.0/0'))).toBe(false)
  expect(isInSubnet('10.244.3.4', subnet('10.244.0.0/16'))).toBe(true)
})

it('the networks of a cluster are those of the Kubernetes pack, and the default of kubeadm for services', () => {
  const spelled = (config: string) => {
    const { pods, services } = kubernetesSettings(config)
    return [pods.map(spellSubnet), services.map(spellSubnet)]
  }
  expect(spelled('')).toEqual([[], ['10.96.0.0/12']])
  expect(spelled('clusterConfiguration: {networking: {podSubnet: "10.244.0.0/16,fd01::/48"}}')).toEqual([
    ['10.244.0.0/16', 'fd01::/48'],
    ['10.96.0.0/12'],
  ])
  expect(spelled('clusterConfiguration:\n  networking: {serviceSubnet: 10.1.0.0/16}')).toEqual([
    [],
    ['10.1.0.0/16'],
  ])
  expect(spelled('clusterConfiguration: {networking: null}')).toEqual([[], ['10.96.0.0/12']])
  expect(spelled('{')).toEqual([[], ['10.96.0.0/12']])
})

it.each([
  ['255.255.252.0', '22'],
  ['0.0.0.0', '0'],
  ['64', '64'],
  ['', ''],
])('the mask %j has the length %j', (mask, length) => {
  expect(prefixLengthOf(mask)).toBe(length)
})

it.each([
  ['10.77.1.11/22', '10.77.0.0/22'],
  ['10.77.1.11/0', '0.0.0.0/0'],
  ['10.77.1.11/32', '10.77.1.11/32'],
  ['10.77.1.131/25', '10.77.1.128/25'],
  ['fd00::1/64', 'fd00::1/64'],
])('%s is in the network %s', (text, network) => {
  const subnet = parseSubnet(text)
  expect(subnet && spellSubnet(networkOf(subnet))).toBe(network)
})

it('the configuration of a pack is read by the rules of kubeadm and the kubelet', () => {
  const config =
    'kubeletConfiguration:\n  failSwapOn: no\n  failCgroupV1: off\ninitConfiguration:\n  localAPIEndpoint: {bindPort: 0x1A2B}\n'
  expect(kubernetesSettings(config)).toMatchObject({
    failsOnSwap: false,
    failsOnCgroupV1: false,
    apiPort: 6699,
  })
})
