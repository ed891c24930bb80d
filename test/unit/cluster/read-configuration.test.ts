import { describe, expect, it } from 'vitest'
import {
  canonicalText,
  maskConfiguration,
  sensitiveValues,
  readConfiguration,
  type HostFacts,
} from '../../../src/cluster/desired/configuration.ts'
import type { ClusterConfiguration, EdgeMachinePoolConfig } from '../../../src/cluster/schemas.ts'
import { refusalOf } from '../../support/refusal-of.ts'

const facts: HostFacts = {
  ...{ id: 'edge-7', hostName: 'Press-7', architecture: 'amd64' },
  nics: [
    { nicName: 'eth0', ip: '192.0.2.7', isDefault: true },
    { nicName: 'eth1', ip: '198.51.100.7', isDefault: false },
    { nicName: 'eth2', isDefault: false },
  ],
  addresses: ['192.0.2.7', '198.51.100.7', '2001:db8::7'],
}

type ClusterConfig = NonNullable<
  NonNullable<NonNullable<NonNullable<ClusterConfiguration['spec']>['cloudConfig']>['spec']>['clusterConfig']
>
interface Given {
  readonly name?: string
  readonly path?: string
  readonly scheduleAt?: string
  readonly cluster?: ClusterConfig
  readonly pools?: EdgeMachinePoolConfig[]
}
const bodyOf = ({
  name = 'shop',
  path = '/definitions/1',
  scheduleAt = '',
  cluster = {},
  pools = [],
}: Given) => ({
  metadata: { name },
  spec: {
    ...{ archiveUploadPath: path, scheduleAt },
    cloudConfig: { spec: { clusterConfig: cluster, machinePoolConfig: pools } },
  },
})
const read = (given: Given) => readConfiguration(bodyOf(given), facts)
const pool = (more: Partial<EdgeMachinePoolConfig> = {}): EdgeMachinePoolConfig => ({ hosts: [{}], ...more })
const host = (more: NonNullable<EdgeMachinePoolConfig['hosts'][number]>) => ({
  pools: [pool({ hosts: [more] })],
})

describe('what is posted', () => {
  it('a body with nothing but a name and a definition is this host, with the address of its default route', () => {
    const { node, endpoint, problems } = readConfiguration(
      { metadata: { name: 'shop' }, spec: { archiveUploadPath: '/definitions/1' } },
      facts,
    )
    expect(node).toEqual({
      ...{ name: 'press-7', address: '192.0.2.7', poolName: 'control-plane-pool' },
      ...{ labels: {}, taints: [], runsWorkloads: true },
    })
    expect([endpoint, problems]).toEqual(['', []])
  })

  it('empty texts, lists and objects mean: not set', () => {
    const empty = read({
      cluster: {
        controlPlaneEndpoint: { host: '', type: '', ddnsSearchDomain: '' },
        overlayNetworkConfiguration: { enable: false, cidr: '' },
        ...{ ntpServers: [], sshKeys: [], isTwoNodeCluster: false },
      },
      pools: [
        pool({
          hosts: [
            {
              hostUid: '',
              hostID: '',
              hostName: '',
              hostAddress: '',
              nicName: '',
              twoNodeCandidatePriority: '',
            },
          ],
          ...{ name: '', size: 0, additionalLabels: {}, taints: [], machinePoolProperties: { archType: '' } },
        }),
      ],
    })
    expect(empty).toEqual(read({}))
  })

  it.each<[string, Given, string]>([
    ['the interface that is named', host({ nicName: 'eth1' }), '198.51.100.7'],
    ['the interface in networkInfo', host({ networkInfo: [{ nicName: 'eth1' }] }), '198.51.100.7'],
    ['the address that is given', host({ hostAddress: '2001:DB8:0::7' }), '2001:db8::7'],
  ])('the address of the node is that of %s', (_what, given, address) => {
    expect(read(given)).toMatchObject({ node: { address }, problems: [] })
  })

  it('the address of the node is that of the management interface where one is chosen, unless another is named', () => {
    const nics = facts.nics.map((nic) => ({ ...nic, ...(nic.isDefault ? {} : { isManagement: true }) }))
    const address = (given: Given) => readConfiguration(bodyOf(given), { ...facts, nics }).node.address
    expect(address({})).toBe('198.51.100.7')
    expect(address(host({ nicName: 'eth0' }))).toBe('192.0.2.7')
    // Without an address of its own it is that of the default route.
    const bare = nics.map((nic) => ({ ...nic, isManagement: nic.nicName === 'eth2' }))
    expect(readConfiguration(bodyOf({}), { ...facts, nics: bare }).node.address).toBe('192.0.2.7')
  })

  it.each<[string, Given, string]>([
    ['a foreign address', host({ hostAddress: '203.0.113.9' }), 'AddressInvalid'],
    ['an unknown interface', host({ nicName: 'eth9' }), 'AddressInvalid'],
    ['an interface without an address', host({ nicName: 'eth2' }), 'AddressInvalid'],
  ])('%s is a finding of the pre-flight', (_what, given, code) => {
    expect(read(given).problems.map((each) => each.code)).toEqual([code])
  })

  it.each<[string, Given, string]>([
    ['no name', { name: '' }, 'metadata.name'],
    ['a name with an upper-case letter', { name: 'Shop' }, 'metadata.name'],
    ['no definition', { path: '' }, 'spec.archiveUploadPath'],
    ['a time', { scheduleAt: '2026-01-31T08:00:00Z' }, 'spec.scheduleAt'],
    ['a worker pool', { pools: [pool({ isControlPlane: false })] }, 'isControlPlane'],
    [
      'no room for workloads',
      { pools: [pool({ useControlPlaneAsWorker: false })] },
      'useControlPlaneAsWorker',
    ],
    ['another architecture', { pools: [pool({ machinePoolProperties: { archType: 'arm64' } })] }, 'archType'],
    ['a taint without effect', { pools: [pool({ taints: [{ key: 'dedicated' }] })] }, 'taints[0].effect'],
    ['an invalid label', { pools: [pool({ additionalLabels: { 'a b': 'c' } })] }, 'additionalLabels["a b"]'],
    [
      'a label without a good value',
      { pools: [pool({ additionalLabels: { a: 'b c' } })] },
      'additionalLabels["a"]',
    ],
    [
      'a label of the kubelet',
      { pools: [pool({ additionalLabels: { 'kubernetes.io/hostname': 'press' } })] },
      'additionalLabels["kubernetes.io/hostname"]',
    ],
    ['a size that is negative', { pools: [pool({ size: -1 })] }, 'machinePoolConfig[0].size'],
    ['a name that no node may have', host({ hostName: 'press_7' }), 'hostName'],
    [
      'a server that is two',
      { cluster: { ntpServers: ['a.example', 'b c'] } },
      'clusterConfig.ntpServers[1]',
    ],
    ['an invalid key', { cluster: { sshKeys: ['ssh-key'] } }, 'clusterConfig.sshKeys[0]'],
    ['a tag that JSON has rounded', host({ tags: ['a', { serial: 2 ** 63 }] }), 'hosts[0].tags[1].serial'],
    ['a name server for the endpoint', { cluster: { controlPlaneEndpoint: { type: 'DDNS' } } }, 'type'],
  ])('%s is refused with the name of the field', (_what, given, field) => {
    const refusal = refusalOf(() => read(given))
    expect(refusal).toMatchObject({ code: 'BadRequest' })
    expect(String(refusal.details.field)).toContain(field)
  })

  it('a tag of the cluster that JSON has rounded is refused with its path, and one in quotes is not', () => {
    const tagged = (serial: unknown) => () =>
      readConfiguration({ ...bodyOf({}), metadata: { name: 'shop', tags: { line: { serial } } } }, facts)
    const field = 'metadata.tags.line.serial'
    expect(refusalOf(tagged(JSON.parse('9007199254740993'))).details).toEqual({ field })
    for (const serial of ['9007199254740993', 9_007_199_254_740_991, -1.5, 0x1f])
      expect(tagged(serial)).not.toThrow()
  })

  it('the id of this host may be given in one or in both spellings', () => {
    for (const id of [{ hostUid: 'edge-7' }, { hostID: 'edge-7' }, { hostUid: 'edge-7', hostID: 'edge-7' }])
      expect(read(host(id))).toEqual(read({}))
  })

  it('the refusal of another host names the field and the id of this one', () => {
    const refusal = refusalOf(() => read(host({ hostID: 'edge-8' })))
    expect(refusal.details).toEqual({ field: 'spec.cloudConfig.spec.machinePoolConfig[0].hosts[0].hostID' })
    expect(refusal.message).toContain('edge-7')
  })

  it.each([
    { hostUid: 'edge-7', hostID: 'edge-8' },
    { hostUid: 'edge-8', hostID: 'edge-7' },
    { hostUid: 'edge-8', hostID: 'edge-9' },
  ])('two ids that differ are refused: %j', (ids) => {
    expect(refusalOf(() => read(host(ids)))).toMatchObject({
      code: 'BadRequest',
      details: { field: 'spec.cloudConfig.spec.machinePoolConfig[0].hosts[0].hostID' },
    })
  })

  it.each<[string, Given]>([
    ['another host', host({ hostUid: 'edge-8' })],
    ['another host, as it is also spelled', host({ hostID: 'edge-8' })],
    ['another host beside an empty one', host({ hostUid: '', hostID: 'edge-8' })],
    ['another host, spelled twice', host({ hostUid: 'edge-8', hostID: 'edge-8' })],
    ['a second host', { pools: [pool({ hosts: [{}, {}] })] }],
    ['a second pool', { pools: [pool(), pool()] }],
    ['a larger pool', { pools: [pool({ size: 3 })] }],
    ['two nodes', { cluster: { isTwoNodeCluster: true } }],
    ['a candidate of two nodes', host({ twoNodeCandidatePriority: 'primary' })],
    ['an overlay', { cluster: { overlayNetworkConfiguration: { enable: true } } }],
    ['the network of an overlay', { cluster: { overlayNetworkConfiguration: { cidr: '10.1.0.0/16' } } }],
  ])('%s needs linked hosts', (_what, given) => {
    expect(refusalOf(() => read(given))).toMatchObject({ code: 'NeedsLinkedHosts' })
  })
})

describe('equal bodies', () => {
  it('the order of keys, and what is not set, make no difference', () => {
    expect(canonicalText({ b: [1, { y: 2, x: '' }], a: 'z', c: {}, d: [], e: '' })).toBe(
      canonicalText({ a: 'z', b: [1, { y: 2 }] }),
    )
    expect(canonicalText({ a: false })).not.toBe(canonicalText({}))
    const deep = JSON.parse(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`) as object
    expect(() => canonicalText(deep)).toThrow('more than 32 levels deep')
    expect(canonicalText({ a: ['', 'x'] })).not.toBe(canonicalText({ a: ['x', ''] }))
  })
})

describe('sensitive values', () => {
  const variables = [
    { profileUid: 'p1', name: 'password', value: 'of-p1', isSensitive: true },
    { profileUid: 'p2', name: 'password', value: 'of-p2', isSensitive: false },
    { profileUid: 'p1', name: 'pin', value: '', isSensitive: true },
    { profileUid: 'p1', name: 'key', value: 'by default', isSensitive: true },
  ]
  const posted = (profileUid: string) => ({
    spec: { profileVariables: [{ name: 'password', profileUid, value: 'given' }] },
  })
  const shown = (uid: string) =>
    maskConfiguration(posted(uid), variables).spec?.profileVariables?.map(({ value }) => value)

  it('the value of a sensitive variable is masked, also where its profile is not given', () => {
    expect([shown('p1'), shown('p2'), shown('')]).toEqual([['********'], ['given'], ['********']])
  })

  it('given and default values are secrets, empty ones are not', () => {
    expect(sensitiveValues({ variables, derived: [] })).toEqual(['of-p1', 'by default'])
  })
})

describe('the network of the host', () => {
  const nics = [
    {
      ...{ nicName: 'eth0', ip: '192.0.2.7', subnet: '255.255.255.0', gateway: '192.0.2.1' },
      ...{ macAddr: '02:fc:00:00:00:01', dns: ['192.0.2.53'], isDefault: true },
    },
    { nicName: 'eth1', ip: '198.51.100.7', subnet: '255.255.255.0', isDefault: false },
  ]
  const found = (given: NonNullable<EdgeMachinePoolConfig['hosts'][number]>) =>
    readConfiguration(bodyOf(host(given)), { ...facts, nics })
  const hostPath = 'spec.cloudConfig.spec.machinePoolConfig[0].hosts[0]'

  it('may be named as it is, in any spelling', () => {
    const nic = { ...nics[0]!, ip: '192.0.2.7/24', macAddr: '02:FC:00:00:00:01', subnet: '24' }
    for (const given of [
      { nic },
      { networkInfo: [nic, { ...nics[1]! }] },
      { nicName: 'eth0', staticIP: '192.0.2.7' },
    ])
      expect(found(given as never).problems).toEqual([])
    expect(found({ staticIP: '198.51.100.7' }).node.address).toBe('198.51.100.7')
  })

  it.each([
    [{ nic: { ip: '192.0.2.99' } }, 'nic.ip'],
    [{ staticIP: '192.0.2.99' }, 'staticIP'],
    [{ hostAddress: '192.0.2.7', staticIP: '198.51.100.7' }, 'staticIP'],
    [{ nic: { subnet: '255.255.0.0' } }, 'nic.subnet'],
    [{ nic: { gateway: '192.0.2.2' } }, 'nic.gateway'],
    [{ nic: { nicName: 'eth1', gateway: '192.0.2.1' } }, 'nic.gateway'],
    [{ networkInfo: [{ macAddr: '02:fc:00:00:00:09' }] }, 'networkInfo[0].macAddr'],
    [{ networkInfo: [{}, { nicName: 'eth1', subnet: '8' }] }, 'networkInfo[1].subnet'],
    [{ nic: { dns: ['192.0.2.53', '192.0.2.54'] } }, 'nic.dns'],
    [{ nic: { nicName: 'eth1', isDefault: true } }, 'nic.isDefault'],
  ])('is not changed: %j is refused with its path', (given, field) => {
    expect(found(given).problems).toMatchObject([{ code: 'AddressInvalid', path: `${hostPath}.${field}` }])
  })
})
