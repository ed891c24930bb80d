import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { NicSummaryList } from '../../src/network/schemas.ts'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootNetworkHost, type NetworkHost, type Owner } from './host/network-host.ts'
import './host/global-setup.ts'

// Root's own socket, so that a request needs no new connection.
const path = '/v1/edge-mgmt/network'
const body = JSON.stringify({
  ...{ type: 'static', ip: '192.0.2.11', subnet: '255.255.255.0', gateway: '192.0.2.1' },
  mtu: 1400,
})

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
  const api = async (...args: string[]) =>
    JSON.parse(await host.output(['edgehostctl', 'api', ...args])) as Record<string, unknown>
  const isState = (uid: string, state: string) =>
    eventually(
      async () => expect(await api('get', `${path}/changes/${uid}`)).toMatchObject({ state }),
      60_000,
    )
  const begin = async () => {
    const { uid } = JSON.parse(
      await host.output(
        ['edgehostctl', 'api', 'put', `${path}/interfaces/host0/config?window=30`, '--data', '-'],
        {
          input: body,
        },
      ),
    ) as { uid: string }
    await isState(uid, 'trial')
    return uid
  }
  const isReached = (address: string) =>
    eventually(async () => {
      if (!(await network.reaches(address))) throw new Error(`the host does not answer at ${address}`)
    }, 30_000)

  beforeAll(async () => {
    network = await bootNetworkHost(backend)
    host = asEdgehostd(network)
    await installPackage(host, await readFile(inject('deb')))
  })
  afterAll(() => network.unplug())

  it('the sandboxed daemon sees its links, their owner and their files', async () => {
    const { interfaces, problems } = (await api('get', `${path}/interfaces`)) as unknown as NicSummaryList
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
    await isReached('192.0.2.11')
    expect(await host.read(file)).toBe(before)
    await host.output(['edgehostctl', 'network', 'revert', uid])
    await isState(uid, 'reverted')
    await isReached('192.0.2.10')
    expect(await host.read(file)).toBe(before)
  })

  it('a confirmed change is in the file of its owner, and is there after a boot', async () => {
    const uid = await begin()
    await host.output(['edgehostctl', 'network', 'confirm', uid])
    expect(await host.read(file)).toContain(kept)
    expect(await host.sh('cat /sys/class/net/host0/mtu')).toBe('1400\n')
    await network.reboot()
    await isReached('192.0.2.11')
    const { interfaces } = (await api('get', `${path}/interfaces`)) as unknown as NicSummaryList
    expect(interfaces.find(({ name }) => name === 'host0')).toMatchObject({
      ip: '192.0.2.11',
      mtu: 1400,
      owner,
    })
  })
})

describe('on a host of systemd-networkd', () => {
  let network: NetworkHost
  let host: Edgehostd
  const send = async (method: 'post' | 'put' | 'delete', target: string, input?: object) => {
    const data = input === undefined ? [] : ['--data', '-']
    const options = input === undefined ? {} : { input: JSON.stringify(input) }
    const text = await host.output(['edgehostctl', 'api', method, `${path}/${target}`, ...data], options)
    return JSON.parse(text) as { uid: string }
  }
  const get = async (target: string) =>
    JSON.parse(await host.output(['edgehostctl', 'api', 'get', `${path}/${target}`])) as Record<
      string,
      unknown
    >
  const isState = (uid: string, state: string) =>
    eventually(async () => expect(await get(`changes/${uid}`)).toMatchObject({ state }), 60_000)
  const confirm = async (uid: string) => {
    await isState(uid, 'trial')
    await host.output(['edgehostctl', 'network', 'confirm', uid])
    await isState(uid, 'confirmed')
  }
  const bridge = {
    ...{ name: 'br0', members: ['host0'], type: 'static', stpEnabled: false },
    ...{ ip: '192.0.2.10', subnet: '255.255.255.0', gateway: '192.0.2.1' },
  }
  const isReached = () =>
    eventually(async () => {
      if (!(await network.reaches('192.0.2.10'))) throw new Error('the host does not answer')
    }, 30_000)

  beforeAll(async () => {
    network = await bootNetworkHost('networkd')
    host = asEdgehostd(network)
    await installPackage(host, await readFile(inject('deb')))
    await network.addForeign()
  })
  afterAll(() => network.unplug())

  it('an address that another device has is refused, with its hardware address', async () => {
    await network.neighbour('ip', 'address', 'add', '192.0.2.77/24', 'dev', 'edge0')
    const body = { type: 'static', ip: '192.0.2.77', subnet: '255.255.255.0', gateway: '192.0.2.1' }
    expect(await send('put', 'interfaces/host0/config?dryRun=true', body)).toMatchObject({
      problems: [
        { field: 'ip', reason: expect.stringMatching(/^192.0.2.77 is taken: the device ..:/) as string },
      ],
    })
  })

  it('a bridge over the link of the address is taken back, and the host is as before', async () => {
    const before = await network.snapshot()
    const { uid } = await send('post', 'bridges/br0?window=30', bridge)
    await isState(uid, 'trial')
    expect(await get('bridges/br0')).toMatchObject({
      ip: '192.0.2.10',
      members: ['host0'],
      stpEnabled: false,
    })
    expect(await network.snapshot()).toContain('br0 inet 192.0.2.200/32')
    await host.output(['edgehostctl', 'network', 'revert', uid])
    await isState(uid, 'reverted')
    // Its new IPv6 addresses are looked for by others for a second (RFC 4862, 5.4).
    await eventually(async () => expect(await network.snapshot()).toBe(before))
  })

  it('it is kept over a boot with the IPv6 address of its member, and its deletion gives that back', async () => {
    const { uid } = await send('post', 'bridges/br0?window=60', bridge)
    await confirm(uid)
    await network.reboot()
    await isReached()
    const addresses = (reply: Record<string, unknown>) =>
      (reply.addresses as { address: string }[]).map(({ address }) => address)
    expect(addresses(await get('bridges/br0'))).toEqual(expect.arrayContaining(['192.0.2.10', 'fd00:1::10']))
    const removal = await send('delete', 'bridges/br0?window=60')
    await confirm(removal.uid)
    expect(await get('bridges')).toEqual({ items: [] })
    expect(await get('interfaces/host0')).toMatchObject({
      ip: '192.0.2.10',
      configured: { files: ['/etc/systemd/network/20-host0.network'] },
    })
    await isReached()
  })

  it('an address by DHCP and back, each kept', async () => {
    const byDhcp = await send('put', 'interfaces/host0/config?window=60', { type: 'dhcp' })
    await confirm(byDhcp.uid)
    expect(await get('interfaces/host0')).toMatchObject({
      type: 'dhcp',
      configured: { addresses: ['fd00:1::10/64'] },
    })
    const back = await send('put', 'interfaces/host0/config?window=60', {
      ...{ type: 'static', ip: '192.0.2.10', subnet: '255.255.255.0', gateway: '192.0.2.1' },
    })
    await confirm(back.uid)
    await isReached()
  })
})
