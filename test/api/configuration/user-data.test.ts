import { expect, it, onTestFinished } from 'vitest'
import type { UserData } from '../../../src/configuration/schemas.ts'
import { capturedHost } from '../../support/network-host.ts'
import { createTestEdge, type ErrorReply } from '../../support/test-edge.ts'

const current = '/v1/edge-mgmt/edgehosts/current'
const path = `${current}/userdata`

async function start(options: Parameters<typeof createTestEdge>[0] = {}) {
  const edge = await createTestEdge(options)
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('alice')
  const send = (method: 'POST' | 'PUT', payload: unknown, token = access) =>
    edge.app.inject({ method, url: path, headers: { authorization: token }, payload: payload as object })
  const show = async () => (await edge.get(path, access)).json<UserData>()
  return { edge, access, send, show }
}

it('user data is applied at once: proxies, tags, and what is so already', async () => {
  const { edge, access, send, show } = await start()
  const { hostName } = await show()
  const httpsProxy = 'http://edge:canary@proxy.example:3128'
  const created = await send('POST', {
    hostName,
    tags: { hall: { name: 'B' } },
    network: { httpsProxy },
    v1Management: { type: 'local' },
    stages: '',
    registryCredentials: { insecure: false, domain: '' },
  })
  expect(created.statusCode, created.body).toBe(201)
  expect(created.json()).toEqual({ uid: expect.any(String) as string })
  expect((await edge.get(`${current}/configurations`, access)).json()).toEqual({
    httpsProxy: 'http://edge:********@proxy.example:3128',
  })
  const shown = await show()
  expect(shown).toMatchObject({
    hostName,
    tags: { hall: { name: 'B' } },
    network: { httpsProxy: 'http://edge:********@proxy.example:3128' },
    v1Management: { type: 'local' },
  })
  expect(shown.network.interfaces).toHaveProperty('eth0')
  expect((await send('POST', {})).json()).toMatchObject({ code: 'UserDataExists' })
  // Without the section the proxy stays; with it it is replaced.
  expect((await send('PUT', { tags: { a: {} } })).statusCode).toBe(204)
  expect(await show()).toMatchObject({
    tags: { a: {} },
    network: { httpsProxy: expect.any(String) as string },
  })
  expect((await send('PUT', { network: {} })).statusCode).toBe(204)
  expect((await show()).network).not.toHaveProperty('httpsProxy')
})

it('an interface that changes is a trial, which the reply names and user data shows', async () => {
  const { edge, send, show } = await start()
  const before = (await show()).network.interfaces
  const interfaces = {
    eth0: { type: 'static', ipAddress: '192.0.2.9/24', gateway: '192.0.2.1' },
  }
  const reply = await send('PUT', { network: { interfaces } })
  expect(reply.statusCode, reply.body).toBe(204)
  const { networkChange, network } = await show()
  expect(reply.headers.location).toBe(`/v1/edge-mgmt/network/changes/${networkChange?.uid}`)
  expect(network.interfaces).toEqual(before)
  expect(edge.network.isOpen()).toBe(true)
  const second = await send('PUT', {
    tags: { late: {} },
    network: { interfaces: { eth0: { type: 'dhcp' } } },
  })
  expect(second.statusCode, second.body).toBe(429)
  expect((await show()).tags).toEqual({})
})

it('credentials of a registry are shown with a mask, and are in no log, audit record or database', async () => {
  const { edge, send, show } = await start()
  const reply = await send('POST', {
    registryCredentials: { domain: 'registry.example', username: 'edge', password: 'canary-of-registry' },
  })
  expect(reply.statusCode, reply.body).toBe(201)
  const { registryCredentials } = await show()
  expect(registryCredentials).toEqual({
    domain: 'registry.example',
    insecure: false,
    username: 'edge',
    password: '********',
  })
  const again = await send('PUT', { registryCredentials, tags: { a: {} } })
  expect(again.statusCode, again.body).toBe(204)
  expect((await show()).registryCredentials).toEqual(registryCredentials)
  const rows = ['host_user_data', 'audit'].map((table) =>
    JSON.stringify(edge.database.sql.prepare(`SELECT * FROM ${table}`).all()),
  )
  expect([...rows, JSON.stringify(edge.lines)].join()).not.toContain('canary-of-registry')
})

it('stages are taken where the configuration says so', async () => {
  const { send, show } = await start({ flags: ['--userData.stages=true'] })
  const stages = Buffer.from('boot: [{commands: [echo canary]}]').toString('base64')
  const reply = await send('PUT', { stages })
  expect(reply.statusCode, reply.body).toBe(204)
  const shown = await show()
  expect(shown.stages).toBe('********')
  expect(shown).toHaveProperty('stagesStatus.since')
  expect((await send('PUT', { stages: '********', tags: {} })).statusCode).toBe(204)
})

it('interfaces that GET shows, sent back, change nothing, also those by DHCP and those in files of an administrator', async () => {
  const network = capturedHost('networkd', {
    files: { '/usr/bin/arping': '', '/run/dbus/system_bus_socket': '' },
  })
  const { edge, send, show } = await start({ network })
  const { interfaces } = (await show()).network
  expect(interfaces).toMatchObject({
    eth0: { type: 'static', gateway: '192.0.2.1' },
    eth1: { type: 'dhcp', ipAddress: '192.0.2.129/24' },
  })
  const reply = await send('PUT', { network: { interfaces } })
  expect([reply.statusCode, reply.headers.location]).toEqual([204, undefined])
  // An absent name server stays.
  const eth0 = { type: 'static', ipAddress: '192.0.2.20/24', gateway: '192.0.2.1' }
  expect((await send('PUT', { network: { interfaces: { eth0 } } })).headers.location).toBeUndefined()
  expect(edge.network.isOpen()).toBe(false)
  const without = await send('PUT', {
    network: { interfaces: { eth0: { ...eth0, gateway: '' }, eth1: { type: 'dhcp', mtu: 1 } } },
  })
  expect(without.json<ErrorReply>().message).toContain('network.interfaces.eth1.mtu')
})

it('interfaces that change are one trial; of a problem of one of them none is tried', async () => {
  const network = capturedHost('networkd', {
    files: { '/usr/bin/arping': '', '/run/dbus/system_bus_socket': '' },
  })
  const { edge, access, send, show } = await start({ network })
  const eth1 = { type: 'static', ipAddress: '198.19.0.9/24' }
  const bad = await send('PUT', {
    network: { interfaces: { eth1, eth0: { type: 'static', ipAddress: '198.19.0.8/24' } } },
  })
  expect(bad.json<ErrorReply>().message).toMatch(/^network\.interfaces\.eth/)
  expect(edge.network.isOpen()).toBe(false)
  const eth0 = { type: 'static', ipAddress: '198.18.0.9/24', gateway: '198.18.0.1' }
  const reply = await send('PUT', { network: { interfaces: { eth0, eth1 } } })
  expect(reply.statusCode, reply.body).toBe(204)
  expect((await show()).networkChange?.summary).toBe(
    'eth0: address 198.18.0.9/24, gateway 198.18.0.1; eth1: address 198.19.0.9/24',
  )
  const changes = (await edge.get('/v1/edge-mgmt/network/changes', access)).json<{
    items: { links: string[] }[]
  }>()
  expect(changes.items.map(({ links }) => links)).toEqual([['eth0', 'eth1']])
})

it.each([
  [{ hostName: 'Another_name' }, 'hostName'],
  [{ stages: 'cnVuOiBb' }, 'userData.stages: true'],
  [{ registryCredentials: { domain: 'https://registry.example' } }, 'registryCredentials.domain'],
  [{ registryCredentials: { password: 'canary' } }, 'registryCredentials.domain'],
  [
    { registryCredentials: { domain: 'registry.example', repositoryName: 'canary' } },
    'registryCredentials.repositoryName',
  ],
  [{ v1Management: { type: 'central' } }, 'v1Management.platformEndpoint'],
  [{ v1Management: { type: 'local', edgeHostToken: 'canary' } }, 'v1Management.edgeHostToken'],
  [{ v1Management: { type: 'both' } }, 'v1Management.type'],
  [{ network: { httpsProxy: 'proxy' } }, 'network.httpsProxy'],
  [{ network: { caCerts: ['x'] } }, 'network.caCerts[0]'],
  [{ network: { mtu: 9000 } }, 'network.mtu'],
  [{ network: { interfaces: { eth0: { type: 'static' } } } }, 'network.interfaces.eth0.ipAddress'],
  [
    { network: { interfaces: { eth0: { type: 'dhcp', ipAddress: '192.0.2.1/24' } } } },
    'network.interfaces.eth0.ipAddress',
  ],
  [{ network: { interfaces: { eth0: { type: 'dhcp', mtu: 9000 } } } }, 'network.interfaces.eth0.mtu'],
  [
    { network: { interfaces: { eth0: { type: 'dhcp', nameserver: ['192.0.2.53'] } } } },
    'network.interfaces.eth0.nameserver',
  ],
  [{ network: { interfaces: { eth77: { type: 'dhcp' } } } }, 'eth77'],
  [{ users: [] }, 'users'],
  [{ tags: 'x' }, 'tags'],
  [{ tags: { line: [{ id: -(2 ** 53) }] } }, 'tags.line[0].id is a whole number beyond 2^53'],
])('%j is refused with the path %s, and nothing of it is done', async (body, field) => {
  const { edge, access, send, show } = await start()
  const reply = await send('PUT', { tags: { never: {} }, ...body })
  expect([400, 404]).toContain(reply.statusCode)
  expect(reply.json<ErrorReply>().message).toContain(field)
  expect(reply.body).not.toContain('canary')
  expect((await show()).tags).toEqual({})
  expect((await edge.get(`${current}/configurations`, access)).json()).toEqual({})
  expect(edge.network.isOpen()).toBe(false)
})

it('another name is asked of its verb, and a failure of it is the answer', async () => {
  const { send, show } = await start()
  // This daemon has no program of verbs.
  const reply = await send('PUT', { hostName: 'line-7', tags: { never: {} } })
  expect(reply.json<ErrorReply>()).toMatchObject({
    code: 'HostNotSet',
    message: expect.stringContaining('set-host-name') as string,
  })
  expect((await show()).tags).toEqual({})
})

it('a viewer does not change it', async () => {
  const { edge, send } = await start()
  const { access } = await edge.login('bob')
  expect((await send('PUT', {}, access)).statusCode).toBe(403)
})
