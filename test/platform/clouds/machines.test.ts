import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { toMachine } from '../../../src/platform/clouds/openstack/openstack.ts'
import type { Machine } from '../../../src/platform/clouds/schemas.ts'
import { statesOf, statesOfServers } from '../../support/cloud-states.ts'
import { createCloudWorld, machinesOf, type CloudWorld } from '../../support/platform-clouds.ts'
import { manyServers, pageOf, recorded, type Page, type PlayedServer } from '../../support/played-cloud.ts'

let world: CloudWorld
beforeAll(async () => {
  world = await createCloudWorld()
})
beforeEach(() => {
  const { cloud } = world
  cloud.misbehaves = undefined
  cloud.servers = []
  cloud.ports = []
  cloud.portLimit = Infinity
  cloud.requests.length = 0
})
afterAll(() => world.close())

interface Listed {
  readonly items: readonly Machine[]
  readonly listmeta: { readonly count: number; readonly continue: string }
}
const list = (config: string, pool = 'pool', query = '') =>
  world.ask<Listed>('GET', `${machinesOf(config, pool)}${query}`)

async function all(config: string, pool = 'pool'): Promise<readonly Machine[]> {
  const found: Machine[] = []
  for (let query = ''; ;) {
    const { code, body } = await list(config, pool, query)
    expect([code, body], JSON.stringify(body)).toEqual(['200', body])
    found.push(...body.items)
    if (body.listmeta.continue === '') return found
    query = `?continue=${encodeURIComponent(body.listmeta.continue)}`
  }
}
const nova = () => world.cloud.asked('/compute/v2.1/servers/detail')
const logIns = () => world.cloud.asked('/identity')

describe('what is played', () => {
  it('pages as the recorded Nova did', () => {
    const { body } = recorded<Page>('nova-page')
    const [link] = body.servers_links ?? []
    const url = new URL(link?.href ?? '')
    url.searchParams.delete('marker')
    // There was one more than the page of two had.
    const played = pageOf([...body.servers, ...manyServers(1, [])], url)
    expect(played).toEqual(body)
    const last = recorded<Page>('nova-last-page').body
    expect(pageOf(last.servers, url)).toEqual(last)
    expect(pageOf([], url)).toEqual(recorded<Page>('nova-empty').body)
  })
})

describe('the machines of a pool', () => {
  it.each([0, 1, 49, 50, 60, 120])('are all of %s servers, whatever a page of Nova has', async (count) => {
    world.cloud.servers = [...manyServers(count, ['plant', 'worker']), ...manyServers(3, ['plant'])]
    const config = await world.configure({ pool: ['plant', 'worker'] })
    const found = await all(config)
    expect(found.map(({ metadata }) => metadata.name)).toEqual(
      world.cloud.servers.slice(0, count).map(({ name }) => name),
    )
    // A page that is full has a next one, which may be empty.
    expect(nova()).toHaveLength(Math.floor(count / 50) + 1)
    expect(world.cloud.asked('/network')).toHaveLength(1)
    expect(logIns().slice(1)).toHaveLength(1)
    const [first] = nova()
    expect([first?.headers['x-openstack-nova-api-version'], first?.url]).toEqual([
      '2.47',
      '/compute/v2.1/servers/detail?tags=plant%2Cworker&limit=100',
    ])
  })

  it('are what Nova and Neutron say of the recorded servers', async () => {
    world.cloud.servers = recorded<Page>('nova-last-page').body.servers.map((server) => ({
      ...server,
      tags: ['one'],
    }))
    world.cloud.ports = recorded<{ ports: object[] }>('neutron-ports').body.ports
    const config = await world.configure({ pool: ['one'] })
    const [one] = await all(config)
    const [server] = world.cloud.servers
    const ports = world.cloud.ports as {
      device_id: string
      network_id: string
      fixed_ips: { subnet_id: string; ip_address: string }[]
    }[]
    const port = ports.find((each) => each.device_id === server?.id)
    expect(one).toEqual({
      ...{ apiVersion: 'v1', kind: 'Machine' },
      metadata: {
        ...{ annotations: { line: '4' }, labels: {}, name: 'one', uid: server?.id },
        creationTimestamp: new Date(String(server?.created)).toISOString(),
        lastModifiedTimestamp: new Date(String(server?.updated)).toISOString(),
      },
      spec: {
        imageId: (server?.image as { id: string }).id,
        ...{ instanceType: 'small', securityGroups: ['default'], type: 'vendorke', zoneId: 'nova' },
        nics: [{ index: 0, privateIPs: [port?.fixed_ips[0]?.ip_address] }],
        ...{ subnetId: port?.fixed_ips[0]?.subnet_id, vpcId: port?.network_id },
      },
      status: { health: { conditions: [], state: '' }, instanceState: 'Running' },
    })
  })

  it('have the states that the recorded servers had', async () => {
    const { servers } = recorded<Page>('nova-states').body
    world.cloud.servers = servers.map((server) => ({ ...server, tags: ['states'] }))
    const found = await all(await world.configure({ pool: ['states'] }))
    expect(statesOf(found)).toEqual(statesOfServers)
    const failed = found.find(({ metadata }) => metadata.name === 'failed')
    const fault = servers.find(({ name }) => name === 'failed')?.fault as { message: string }
    expect(failed?.status.health.conditions).toEqual([
      { type: 'Failed', status: 'True', reason: 'ServerError', message: fault.message },
    ])
  })

  it('have the states of the recorded servers that were deleted', () => {
    const { servers } = recorded<Page>('nova-deleted').body
    const shown = servers.map((server) =>
      [server.status, toMachine(server, []).status.instanceState].join(' '),
    )
    expect(new Set(shown)).toEqual(new Set(['SOFT_DELETED Deleting', 'DELETED Deleted']))
  })

  it('are filtered, ordered and cut as every list', async () => {
    world.cloud.servers = manyServers(60, ['plant']).map((server, index) => ({
      ...server,
      status: index % 2 === 0 ? 'ACTIVE' : 'SHUTOFF',
    }))
    const config = await world.configure({ pool: ['plant'] })
    const { body } = await list(
      config,
      'pool',
      '?filters=status.instanceState=Provisioned&orderBy=metadata.name=1&limit=2&fields=metadata.name',
    )
    expect([body.items, body.listmeta.count]).toEqual([
      [{ metadata: { name: 'server-1' } }, { metadata: { name: 'server-11' } }],
      30,
    ])
    expect((await list(config, 'pool', '?filters=spec.imageId=a')).code).toBe('400 BadRequest')
  })
})

describe('a server', () => {
  /** @param ports of the server; null where the cloud has no Neutron */
  const shown = async (server: Partial<PlayedServer>, ports: readonly object[] | null = []) => {
    const [pattern] = manyServers(1, ['plant'])
    const one = { ...pattern, ...server } as PlayedServer
    world.cloud.servers = [one]
    world.cloud.ports = ports === null ? undefined : ports.map((port) => ({ device_id: one.id, ...port }))
    const [machine] = await all(await world.configure({ pool: ['plant'] }))
    return machine
  }
  const address = (addr: string, mac: string, type = 'fixed') => ({
    ...{ addr, version: 4, 'OS-EXT-IPS-MAC:mac_addr': mac, 'OS-EXT-IPS:type': type },
  })

  it('that was booted from a volume has an empty image id', async () => {
    expect((await shown({ image: '' }))?.spec).toMatchObject({ imageId: '', instanceType: 'small' })
  })

  it('has a network card for each hardware address, with its floating address', async () => {
    const addresses = {
      front: [address('10.0.0.5', 'aa'), address('192.0.2.9', 'aa', 'floating'), address('fd00::5', 'aa')],
      back: [address('10.9.0.5', 'bb')],
    }
    const ports = [
      { mac_address: 'bb', network_id: 'net-b', fixed_ips: [{ subnet_id: 'sub-b', ip_address: '10.9.0.5' }] },
      { mac_address: 'cc', network_id: 'net-c', fixed_ips: [{ subnet_id: 'sub-c', ip_address: '10.8.0.5' }] },
      { mac_address: 'aa', network_id: 'net-a', fixed_ips: [{ subnet_id: 'sub-a', ip_address: '10.0.0.5' }] },
    ]
    expect((await shown({ addresses }, ports))?.spec).toMatchObject({
      ...{ vpcId: 'net-a', subnetId: 'sub-a' },
      nics: [
        { index: 0, privateIPs: ['10.0.0.5', 'fd00::5'], publicIp: '192.0.2.9' },
        { index: 1, privateIPs: ['10.9.0.5'] },
        { index: 2, privateIPs: ['10.8.0.5'] },
      ],
    })
  })

  it('of a cloud without Neutron has the addresses that Nova knows', async () => {
    const spec = (await shown({ addresses: { front: [address('10.0.0.5', 'aa')] } }, null))?.spec
    expect(spec?.nics).toEqual([{ index: 0, privateIPs: ['10.0.0.5'] }])
    expect(spec).not.toHaveProperty('vpcId')
    expect(world.cloud.asked('/network')).toEqual([])
  })

  it('of which Nova says next to nothing has every field that is needed', async () => {
    const [pattern] = manyServers(1, [])
    const nothing = Object.fromEntries(Object.keys({ ...pattern }).map((key) => [key, null]))
    const machine = await shown({ ...nothing, id: 'an-id', tags: ['plant'] })
    expect(machine).toEqual({
      ...{ apiVersion: 'v1', kind: 'Machine' },
      metadata: {
        ...{ annotations: {}, labels: {}, name: '', uid: 'an-id' },
        creationTimestamp: '1970-01-01T00:00:00.000Z',
        lastModifiedTimestamp: '1970-01-01T00:00:00.000Z',
      },
      spec: { imageId: '', instanceType: '', nics: [], type: 'vendorke' },
      status: { health: { conditions: [], state: '' }, instanceState: 'Unknown' },
    })
  })
})

describe('the reads of a pool', () => {
  it('are one, however many ask; one token serves all pools of an account until shortly before its end', async () => {
    world.cloud.servers = manyServers(5, ['plant'])
    const config = await world.configure({ pool: ['plant'], other: ['plant'] })
    world.cloud.requests.length = 0
    const replies = await Promise.all(Array.from({ length: 40 }, () => list(config)))
    expect(new Set(replies.map(({ code }) => code))).toEqual(new Set(['200']))
    expect([nova().length, logIns().length]).toEqual([1, 1])
    await list(config, 'other')
    expect([nova().length, logIns().length]).toEqual([2, 1])
    await world.turn(57 * 60_000)
    await list(config)
    expect([nova().length, logIns().length]).toEqual([3, 1])
    await world.turn(60_000)
    await list(config)
    expect([nova().length, logIns().length]).toEqual([4, 2])
  })

  it('begin with another token where the cloud has revoked it, and are refused where the credentials are gone', async () => {
    world.cloud.servers = manyServers(2, ['plant'])
    const { uid, secretId } = await world.newAccount()
    const config = await world.configure({ pool: ['plant'] }, uid)
    expect(await all(config)).toHaveLength(2)
    world.cloud.revokeTokens()
    await world.turn(10_000)
    expect(await all(config)).toHaveLength(2)
    world.cloud.credentials.delete(secretId)
    world.cloud.revokeTokens()
    await world.turn(10_000)
    const { code, message } = await list(config)
    expect([code, message]).toEqual(['400 CloudCredentialsRefused', 'the cloud refuses these credentials'])
  })

  it('begin anew where the last server of a page is deleted meanwhile', async () => {
    world.cloud.servers = manyServers(120, ['plant'])
    let pages = 0
    world.cloud.misbehaves = ({ url }) => {
      if (url.startsWith('/compute') && (pages += 1) === 2)
        world.cloud.servers = world.cloud.servers.filter((_, index) => index !== 49)
      return undefined
    }
    expect(await all(await world.configure({ pool: ['plant'] }))).toHaveLength(119)
    expect(pages).toBe(5)
  })

  it.each<[string, number, object, string]>([
    ['forbids it', 403, {}, '400 CloudCredentialsRefused'],
    ['refuses each token', 401, {}, '400 CloudCredentialsRefused'],
    ['has an error', 500, {}, '503 CloudUnavailable'],
    ['has no list', 200, {}, '503 CloudUnavailable'],
    ['has no such path', 404, {}, '503 CloudUnavailable'],
    ['does not know the version', recorded('nova-unknown-version').status, {}, '503 CloudUnavailable'],
    [
      'pages without end',
      200,
      { servers: [{ id: 'a' }], servers_links: [{ rel: 'next' }] },
      '503 CloudUnavailable',
    ],
    ['redirects', 301, {}, '503 CloudUnavailable'],
  ])('end where Nova %s', async (_, status, body, wanted) => {
    const config = await world.configure({ pool: ['plant'] })
    world.cloud.misbehaves = ({ url }, reply) =>
      url.startsWith('/compute') ? reply.writeHead(status).end(JSON.stringify(body)) : undefined
    expect((await list(config)).code).toBe(wanted)
  })

  it('end where Neutron has an error', async () => {
    const config = await world.configure({ pool: ['plant'] })
    world.cloud.misbehaves = ({ url }, reply) =>
      url.startsWith('/network') ? reply.writeHead(500).end('{}') : undefined
    const { code, message } = await list(config)
    expect([code, message]).toEqual(['503 CloudUnavailable', 'Neutron answers with status 500'])
  })

  it('take all pages of a Neutron that limits them', async () => {
    world.cloud.servers = manyServers(5, ['plant'])
    world.cloud.ports = world.cloud.servers.map(({ id }) => ({
      ...{ device_id: id, mac_address: id, network_id: 'net', fixed_ips: [] },
    }))
    world.cloud.portLimit = 2
    const found = await all(await world.configure({ pool: ['plant'] }))
    expect(found.map(({ spec }) => spec.vpcId)).toEqual(Array(5).fill('net'))
    expect(world.cloud.asked('/network')).toHaveLength(3)
  })

  it('take servers with all the metadata that Nova allows by default, in smaller pages', async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: 128 }, (_, index) => [`${index}`.padEnd(255, 'n'), 'ü'.repeat(255)]),
    )
    // Two bytes for each letter, so that a page of 50 is longer than the platform takes.
    world.cloud.servers = manyServers(120, ['plant']).map((server) => ({
      ...server,
      ...{ metadata, key_name: 'k'.repeat(90_000) },
    }))
    const found = await all(await world.configure({ pool: ['plant'] }))
    expect(found.map((machine) => Object.keys(machine.metadata.annotations).length)).toEqual(
      Array(120).fill(128),
    )
    expect(new Set(nova().map(({ url }) => new URL(url, 'https://a').searchParams.get('limit')))).toEqual(
      new Set(['100', '25']),
    )
  })

  it('leave out what has an endless id, and cut texts', async () => {
    const [one, two] = manyServers(2, ['plant'])
    const name = '\u0001'.repeat(1_000_000)
    world.cloud.servers = [
      { ...one, name, id: 'one', tags: ['plant'] },
      { ...two, id: 'i'.repeat(1_000_000), tags: ['plant'] },
    ]
    const found = await all(await world.configure({ pool: ['plant'] }))
    expect(found.map(({ metadata }) => [metadata.uid, metadata.name])).toEqual([
      ['one', '\ufffd'.repeat(255)],
    ])
  })

  it.each<[string, string]>([
    ['a reply of many values', `{"servers":[${'{},'.repeat(2_000_000)}{}]}`],
    ['a reply of many levels', `{"servers":${'['.repeat(8_000_000)}`],
  ])('end with %s, which would take all memory', async (_, text) => {
    const config = await world.configure({ pool: ['plant'] })
    world.cloud.misbehaves = ({ url }, reply) =>
      url.startsWith('/compute') ? reply.writeHead(200).end(text) : undefined
    expect(await list(config)).toMatchObject({
      code: '503 CloudUnavailable',
      message: 'Nova answers as no OpenStack does: its reply has more than 50000 values',
    })
  })

  it('of one account log in once where it has no token yet', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `pool-${index}`)
    const config = await world.configure(Object.fromEntries(names.map((name) => [name, ['plant']])))
    world.cloud.requests.length = 0
    const replies = await Promise.all(names.map((name) => list(config, name)))
    expect(new Set(replies.map(({ code }) => code))).toEqual(new Set(['200']))
    expect([nova().length, logIns().length]).toEqual([30, 1])
  })

  it('do not ask Nova where Neutron has failed', async () => {
    const config = await world.configure({ pool: ['plant'] })
    world.cloud.misbehaves = ({ url }, reply) =>
      url.startsWith('/network') ? reply.writeHead(500).end('{}') : undefined
    expect((await list(config)).code).toBe('503 CloudUnavailable')
    expect(nova()).toEqual([])
  })

  it('that are slow leave the last state, with its age on each machine, and other pools alone; then 503', async () => {
    world.cloud.servers = [...manyServers(2, ['plant']), ...manyServers(3, ['quick'])]
    const config = await world.configure({ pool: ['plant'], quick: ['quick'] })
    await all(config)
    await world.turn(20_000)
    // No read ends by its time limit: a pool that waits for another one would not be answered.
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal)
    let held = 0
    world.cloud.misbehaves = ({ url }) => (url.includes('tags=plant') ? (held += 1) : undefined)
    const first = list(config)
    await expect.poll(() => held).toBe(1)
    // The whole wait for a read that began before.
    world.platform.clock.turn(5_000)
    const { code, body } = await list(config)
    expect(await all(config, 'quick')).toHaveLength(3)
    expect([code, body.items.map(({ status }) => status.health.conditions)]).toEqual([
      '200',
      Array(2).fill([
        {
          ...{ type: 'Outdated', status: 'True', reason: 'CloudUnavailable' },
          message: expect.stringMatching(
            /^as it was [2-9]\d seconds ago: the cloud has not answered yet$/,
          ) as string,
        },
      ]),
    ])
    world.cloud.misbehaves = (_, reply) => reply.socket?.destroy()
    await world.turn(300_000)
    // The read under way fails with its connection.
    const late = list(config)
    world.cloud.dropConnections()
    expect((await late).code).toBe('503 CloudUnavailable')
    await first
    expect(held).toBe(1)
  })
})
