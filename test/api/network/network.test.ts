import { describe, expect, it, onTestFinished } from 'vitest'
import type {
  BondList,
  BridgeList,
  ManagementInterface,
  NicSummary,
  NicSummaryList,
  VlanList,
} from '../../../src/network/schemas.ts'
import { capturedHost } from '../../support/network-host.ts'
import { createTestEdge, type ErrorReply, type TestEdgeOptions } from '../../support/test-edge.ts'

const root = '/v1/edge-mgmt/network'

async function start(options: TestEdgeOptions = {}) {
  const edge = await createTestEdge(options)
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('bob')
  return (path: string) => edge.get(`${root}${path}`, access)
}

describe.each(['airgap', 'connected'] as const)('in mode %s', (mode) => {
  it('viewers see the interfaces, bridges, bonds and VLANs of the host', async () => {
    const get = await start({ mode })
    const { interfaces, ...rest } = (await get('/interfaces')).json<NicSummaryList>()
    expect(interfaces.map(({ name, ip, owner }) => [name, ip, owner])).toEqual([
      ['eth0', '192.0.2.20', 'systemd-networkd'],
      ['eth2', undefined, 'systemd-networkd'],
      ['eth1', undefined, 'systemd-networkd'],
    ])
    expect(rest).toEqual({})
    expect((await get('/interfaces/eth1')).json<NicSummary>()).toEqual(interfaces[2])
    const bridges = (await get('/bridges')).json<BridgeList>()
    expect(bridges.items.map(({ name, members }) => [name, members])).toEqual([['br1', ['eth2']]])
    expect((await get('/bridges/br1')).json()).toEqual(bridges.items[0])
    const { items: bonds } = (await get('/bonds')).json<BondList>()
    expect(bonds).toMatchObject([
      { name: 'bond0', members: ['eth1'], mode: 'active-backup', miiMonitorSec: '0.1' },
    ])
    expect((await get('/bonds/bond0')).json()).toEqual(bonds[0])
    const { items: vlans } = (await get('/vlans')).json<VlanList>()
    expect(vlans).toMatchObject([{ name: 'bond0.7', parentName: 'bond0', parentType: 'bond', vlanID: '7' }])
    expect((await get('/vlans/bond0.7')).json()).toEqual(vlans[0])
    expect((await get('/config-options')).json()).toMatchObject({
      bond: { lacpTransmitRate: ['slow', 'fast'] },
    })
  })
})

it.each([
  ['/interfaces/eth7', 404, 'this host has no interface eth7'],
  ['/interfaces/br1', 404, 'br1 is a bridge; see network/bridges/br1'],
  ['/bonds/eth0', 404, 'eth0 is a NIC; see network/interfaces/eth0'],
  ['/vlans/eth0.7', 404, 'this host has no VLAN eth0.7'],
  ['/bridges/a%20b', 400, '"a b" is no name of an interface'],
  ['/interfaces/a-name-of-sixteen', 400, 'is no name of an interface'],
  ['/bonds/%2e%2e', 404, ''],
])('%s is answered with %i: %s', async (path, status, message) => {
  const reply = await (await start())(path)
  expect([reply.statusCode, reply.json<ErrorReply>().message]).toEqual([
    status,
    expect.stringContaining(message),
  ])
})

it('the candidates for management are the links with an address, and bridges', async () => {
  const reply = await (await start())('/management-interface')
  expect(reply.json<ManagementInterface>()).toEqual({
    selected: '',
    candidates: [
      { name: 'eth0', type: 'nic', ipAddress: '192.0.2.20', status: 'up' },
      { name: 'br1', type: 'bridge', ipAddress: '203.0.113.5', status: 'up' },
      { name: 'bond0', type: 'bond', ipAddress: '192.0.2.129', status: 'up' },
      { name: 'bond0.7', type: 'vlan', ipAddress: '198.51.100.7', status: 'up' },
    ],
  })
})

it('an administrator chooses the management interface, which the document of the host and a restart know', async () => {
  const edge = await createTestEdge()
  onTestFinished(() => edge.stop())
  const path = `${root}/management-interface`
  const { access } = await edge.login('alice')
  const put = (name: unknown) =>
    edge.app.inject({ method: 'PUT', url: path, headers: { authorization: access }, payload: { name } })
  const selected = async () => (await edge.get(path, access)).json<ManagementInterface>().selected
  for (const bad of ['eth1', 'eth7', 'a b', 7]) {
    const refused = await put(bad)
    expect([bad, refused.statusCode, refused.json<ErrorReply>().code]).toEqual([bad, 400, 'BadRequest'])
    expect(refused.json<ErrorReply>().message).toContain('name')
  }
  expect(await selected()).toBe('')
  expect((await put('br1')).statusCode).toBe(204)
  expect((await put('br1')).statusCode).toBe(204)
  expect(await selected()).toBe('br1')
  expect((await put('')).statusCode).toBe(204)
  expect(await selected()).toBe('')
})

it('a host whose links cannot be read says why, and what to try', async () => {
  const network = capturedHost('networkd', {
    output: { 'ip -json -details address show': () => new Error('Cannot open netlink socket') },
  })
  const reply = await (await start({ network }))('/interfaces')
  expect(reply.statusCode).toBe(500)
  expect(reply.json<ErrorReply>()).toMatchObject({
    code: 'NetworkUnreadable',
    message: 'the links cannot be read: ip: Cannot open netlink socket',
  })
})

it('a backend that does not answer is named beside the links of the kernel', async () => {
  const network = capturedHost('networkmanager', {
    output: {
      'nmcli --terse --fields DEVICE,TYPE,STATE,CON-UUID device': () =>
        new Error('Error: NetworkManager is not running.'),
    },
  })
  const { interfaces, problems } = (await (await start({ network }))('/interfaces')).json<NicSummaryList>()
  expect(interfaces.map(({ name, owner }) => [name, owner])).toEqual([
    ['eth0', 'nobody'],
    ['eth1', 'nobody'],
    ['eth2', 'nobody'],
  ])
  expect(problems).toEqual(['nmcli: Error: NetworkManager is not running.'])
})

it('a change is refused where the link was changed since it was read, and says in which fields', async () => {
  const dropIn = '/etc/systemd/network/20-mgmt.network.d/mtu.conf'
  const files: Record<string, string> = { '/usr/bin/arping': '', '/run/dbus/system_bus_socket': '' }
  const isDown = { now: false }
  const edge = await createTestEdge({
    network: capturedHost('networkd', {
      files,
      output: {
        // What runs is not what a client writes.
        'ip -json -details address show': (text) =>
          isDown.now ? text.replaceAll('"192.0.2.20"', '"192.0.2.22"').replaceAll('"LOWER_UP"', '"X"') : text,
      },
    }),
  })
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('alice')
  const ask = (method: 'PUT' | 'DELETE', path: string, ifMatch: string, payload?: object) =>
    edge.app.inject({
      method,
      url: root + path,
      headers: { authorization: access, 'if-match': ifMatch },
      ...(payload === undefined ? {} : { payload }),
    })
  const put = (ifMatch: string, query = '?dryRun=true') =>
    ask('PUT', `/interfaces/eth0/config${query}`, ifMatch, {
      ...{ type: 'static', ip: '192.0.2.21', subnet: '255.255.255.0', gateway: '192.0.2.1' },
    })
  const read = async (path = '/interfaces/eth0') => String((await edge.get(root + path, access)).headers.etag)

  const etag = await read()
  expect(etag).toMatch(/^"[\w-]+"$/)
  isDown.now = true
  expect(await read()).toBe(etag)
  isDown.now = false
  const tried = await put(etag)
  expect([tried.statusCode, tried.headers.etag]).toEqual([200, etag])
  expect((await put('*')).statusCode).toBe(200)

  files[dropIn] = '[Link]\nMTUBytes=1300\n[Network]\nDNS=192.0.2.53\n'
  expect(await read()).not.toBe(etag)
  for (const query of ['?dryRun=true', '']) {
    const refused = await put(etag, query)
    expect([refused.statusCode, refused.json<ErrorReply>()]).toMatchObject([
      412,
      {
        code: 'PreconditionFailed',
        message: 'mtu, nameservers of eth0 changed since it was read; read it again, and change that',
        details: { name: 'eth0', changed: ['mtu', 'nameservers'] },
      },
    ])
  }
  expect(edge.network.calls).not.toContain('start')
  expect((await put(`${etag}, ${await read()}`)).statusCode).toBe(200)
  expect((await put('"of something else"')).json<ErrorReply>().message).toContain('the configuration of eth0')

  const bridge = await read('/bridges/br1')
  expect(bridge).not.toBe(await read())
  expect((await ask('DELETE', '/bridges/br1?dryRun=true', bridge)).statusCode).toBe(200)
  expect((await ask('DELETE', '/bridges/br1', etag)).statusCode).toBe(412)
  const body = { members: ['eth1'], type: 'none' }
  expect((await ask('PUT', '/bridges/br9', '*', body)).json<ErrorReply>()).toMatchObject({
    code: 'PreconditionFailed',
    message: 'there is no link br9 now; without If-Match the request makes it',
  })

  const management = await read('/management-interface')
  const choose = (ifMatch: string) => ask('PUT', '/management-interface', ifMatch, { name: 'br1' })
  expect((await choose(management)).statusCode).toBe(204)
  expect((await choose(management)).statusCode).toBe(412)
  expect((await choose(await read('/management-interface'))).statusCode).toBe(204)
})
