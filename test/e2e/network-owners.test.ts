import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { NicSummaryList } from '../../src/network/schemas.ts'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootNetworkHost, type NetworkHost, type Owner } from './host/network-host.ts'
import './host/global-setup.ts'

const body = {
  ...{ type: 'static', ip: '192.0.2.11', subnet: '255.255.255.0', gateway: '192.0.2.1' },
  mtu: 1400,
}

/** The API of the network on root's own socket, so that a request needs no new connection. */
function apiOf(host: Edgehostd) {
  async function ask(method: 'get' | 'post' | 'put' | 'delete', target: string, input?: object) {
    const data = input === undefined ? [] : ['--data', '-']
    const options = input === undefined ? {} : { input: JSON.stringify(input) }
    const args = ['edgehostctl', 'api', method, `/v1/edge-mgmt/network/${target}`, ...data]
    return JSON.parse(await host.output(args, options)) as Record<string, unknown>
  }
  return {
    get: (target: string) => ask('get', target),
    interfaces: async () => (await ask('get', 'interfaces')) as unknown as NicSummaryList,
    send: async (method: 'post' | 'put' | 'delete', target: string, input?: object) =>
      (await ask(method, target, input)) as { uid: string },
    isState: (uid: string, state: string) =>
      eventually(async () => expect(await ask('get', `changes/${uid}`)).toMatchObject({ state }), 60_000),
  }
}

const isReached = (network: NetworkHost, address: string) =>
  eventually(async () => {
    if (!(await network.reaches(address))) throw new Error(`the host does not answer at ${address}`)
  }, 30_000)

describe.each<[Owner, { owner: string; file: string; kept: string }]>([
  ['netplan', { owner: 'netplan', file: '/etc/netplan/50-plant.yaml', kept: '192.0.2.11/24' }],
  ['ifupdown', { owner: 'ifupdown', file: '/etc/network/interfaces', kept: 'address 192.0.2.11/24' }],
  [
    'networkmanager',
    {
      owner: 'NetworkManager',
      file: '/etc/NetworkManager/system-connections/host0.nmconnection',
      kept: 'address1=192.0.2.11/24,192.0.2.1',
    },
  ],
])('on a host whose links %s has', (backend, { owner, file, kept }) => {
  let network: NetworkHost
  let host: Edgehostd
  let api: ReturnType<typeof apiOf>
  const begin = async () => {
    const { uid } = await api.send('put', 'interfaces/host0/config?window=30', body)
    await api.isState(uid, 'trial')
    return uid
  }

  beforeAll(async () => {
    network = await bootNetworkHost(backend)
    host = asEdgehostd(network)
    api = apiOf(host)
    await installPackage(host, await readFile(inject('deb')))
  })
  afterAll(() => network.unplug())

  it('the sandboxed daemon sees its links, their owner and their files', async () => {
    const { interfaces, problems } = await api.interfaces()
    expect(problems).toBeUndefined()
    expect(interfaces.map(({ name, ip, owner: by }) => [name, ip, by])).toEqual(
      expect.arrayContaining([
        ['host0', '192.0.2.10', owner],
        ['eth2', '203.0.113.10', owner],
      ]),
    )
    const host0 = interfaces.find(({ name }) => name === 'host0')
    // Those of netplan are the ones that it has made for networkd.
    expect(host0?.configured?.files).toEqual([
      backend === 'netplan' ? '/run/systemd/network/10-netplan-host0.network' : file,
    ])
    expect(host0).toMatchObject({
      isWritable: true,
      configured: { type: 'static', addresses: ['192.0.2.10/24', 'fd00:1::10/64'] },
    })
  })

  it('a change is taken back when it is asked, and the file is as before', async () => {
    const before = await host.read(file)
    const uid = await begin()
    await isReached(network, '192.0.2.11')
    expect(await host.read(file)).toBe(before)
    await host.output(['edgehostctl', 'network', 'revert', uid])
    await api.isState(uid, 'reverted')
    await isReached(network, '192.0.2.10')
    expect(await host.read(file)).toBe(before)
  })

  it('a confirmed change is in the file of its owner, and is there after a boot', async () => {
    const uid = await begin()
    await host.output(['edgehostctl', 'network', 'confirm', uid])
    expect(await host.read(file)).toContain(kept)
    expect(await host.sh('cat /sys/class/net/host0/mtu')).toBe('1400\n')
    await network.reboot()
    await isReached(network, '192.0.2.11')
    const { interfaces } = await api.interfaces()
    expect(interfaces.find(({ name }) => name === 'host0')).toMatchObject({
      ip: '192.0.2.11',
      mtu: 1400,
      owner,
    })
  })
})

describe.each<Owner>(['networkd', 'netplan', 'ifupdown', 'networkmanager'])('on a host of %s', (backend) => {
  let network: NetworkHost
  let host: Edgehostd
  let api: ReturnType<typeof apiOf>
  const confirm = async (uid: string) => {
    await api.isState(uid, 'trial')
    await host.output(['edgehostctl', 'network', 'confirm', uid])
    await api.isState(uid, 'confirmed')
  }
  const bridge = {
    ...{ name: 'br0', members: ['host0'], type: 'static', stpEnabled: false },
    ...{ ip: '192.0.2.10', subnet: '255.255.255.0', gateway: '192.0.2.1' },
  }

  beforeAll(async () => {
    network = await bootNetworkHost(backend)
    host = asEdgehostd(network)
    api = apiOf(host)
    await installPackage(host, await readFile(inject('deb')))
    await network.addForeign()
  })
  afterAll(() => network.unplug())

  it.runIf(backend === 'networkd')(
    'an address that another device has is refused, with its hardware address',
    async () => {
      await network.neighbour('ip', 'address', 'add', '192.0.2.77/24', 'dev', 'edge0')
      const body = { type: 'static', ip: '192.0.2.77', subnet: '255.255.255.0', gateway: '192.0.2.1' }
      expect(await api.send('put', 'interfaces/host0/config?dryRun=true', body)).toMatchObject({
        problems: [
          { field: 'ip', reason: expect.stringMatching(/^192.0.2.77 is taken: the device ..:/) as string },
        ],
      })
    },
  )

  it.runIf(backend === 'networkd')(
    'an address of a new network that another device has is noticed in the trial, which fails',
    async () => {
      const { uid } = await api.send('put', 'interfaces/host0/config?window=30', {
        ...{ type: 'static', ip: '198.51.100.1', subnet: '255.255.255.0', gateway: '198.51.100.2' },
      })
      await api.isState(uid, 'reverted')
      expect(await api.get(`changes/${uid}`)).toMatchObject({
        reason: 'failed',
        message: expect.stringMatching(/198\.51\.100\.1 is taken: another device on host0/) as string,
      })
    },
  )

  it('a bridge over the link of the address is taken back, and the host is as before', async () => {
    const before = await network.snapshot()
    const { uid } = await api.send('post', 'bridges/br0?window=30', bridge)
    await api.isState(uid, 'trial')
    expect(await api.get('bridges/br0')).toMatchObject({
      ip: '192.0.2.10',
      members: ['host0'],
      stpEnabled: false,
    })
    expect(await network.snapshot()).toContain('br0 inet 192.0.2.200/32')
    await host.output(['edgehostctl', 'network', 'revert', uid])
    await api.isState(uid, 'reverted')
    // Its new IPv6 addresses are looked for by others for a second (RFC 4862, 5.4).
    await eventually(async () => expect(await network.snapshot()).toBe(before))
  })

  it('it is kept over a boot with the IPv6 address of its member, and its deletion gives that back', async () => {
    const { configured: before } = await api.get('interfaces/host0')
    const { uid } = await api.send('post', 'bridges/br0?window=60', bridge)
    await confirm(uid)
    await network.reboot()
    await isReached(network, '192.0.2.10')
    const addresses = (reply: Record<string, unknown>) =>
      (reply.addresses as { address: string }[]).map(({ address }) => address)
    await eventually(async () =>
      expect(addresses(await api.get('bridges/br0'))).toEqual(
        expect.arrayContaining(['192.0.2.10', 'fd00:1::10']),
      ),
    )
    const removal = await api.send('delete', 'bridges/br0?window=60')
    await confirm(removal.uid)
    expect(await api.get('bridges')).toEqual({ items: [] })
    await isReached(network, '192.0.2.10')
    await network.reboot()
    await isReached(network, '192.0.2.10')
    expect(await api.get('interfaces/host0')).toMatchObject({ ip: '192.0.2.10', configured: before })
  })

  it.runIf(backend === 'networkd')('an address by DHCP and back, each kept', async () => {
    const byDhcp = await api.send('put', 'interfaces/host0/config?window=60', { type: 'dhcp' })
    await confirm(byDhcp.uid)
    expect(await api.get('interfaces/host0')).toMatchObject({
      type: 'dhcp',
      configured: { addresses: ['fd00:1::10/64'] },
    })
    const back = await api.send('put', 'interfaces/host0/config?window=60', {
      ...{ type: 'static', ip: '192.0.2.10', subnet: '255.255.255.0', gateway: '192.0.2.1' },
    })
    await confirm(back.uid)
    await isReached(network, '192.0.2.10')
  })
})
