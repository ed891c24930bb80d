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
