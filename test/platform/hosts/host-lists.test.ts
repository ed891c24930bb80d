import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

type Headers = Readonly<Record<string, string>>
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
interface Reply {
  readonly uid: string
  readonly token: string
  readonly metadata: { readonly labels?: object; readonly annotations?: object }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
  readonly edgeHosts: readonly Readonly<Record<string, unknown>>[]
  readonly listmeta: { readonly count: number; readonly continue: string }
  readonly details?: { readonly field?: string }
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Headers
let projectUid: string
const uids = new Map<string, string>()

async function ask(method: Method, url: string, payload?: object, headers: Headers = {}) {
  const reply = await platform.app.inject({
    ...{ method, url, headers: { ...admin, ...headers } },
    ...(payload ? { payload } : {}),
  })
  const json = (reply.body === '' || reply.body === 'null' ? {} : reply.json()) as Reply
  return { status: reply.statusCode, json }
}
const inProject = () => ({ projectuid: projectUid })
const names = async (filters: string, headers: Headers = inProject()) => {
  const url = `/v1/edgehosts?filters=${encodeURIComponent(filters)}`
  const { items, listmeta } = (await ask('GET', url, undefined, headers)).json
  expect(listmeta.count).toBe(items.length)
  return items.map(({ metadata }) => metadata.name).sort()
}

async function makeToken(name: string, defaultProjectUid = projectUid) {
  const entity = { metadata: { name: `of ${name}` }, spec: { defaultProjectUid } }
  return (await ask('POST', '/v1/edgehosts/tokens', entity)).json.token
}

async function addHost(name: string, labels: object, defaultProjectUid = projectUid) {
  const host = playEdgeHost(platform)
  await host.register(await makeToken(name, defaultProjectUid), name)
  uids.set(name, host.uid)
  const headers = defaultProjectUid === '' ? {} : inProject()
  await ask('PUT', `/v1/edgehosts/${host.uid}/meta`, { metadata: { labels } }, headers)
  return host
}

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  admin = await platform.signIn('root@plant.example', password)
  projectUid = (await ask('POST', '/v1/projects', { metadata: { name: 'north' } })).json.uid
  await addHost('press-1', { hall: '3', 'plant.example/line': 'a' })
  await addHost('press-2', { hall: '31', line: 'hall' })
  await addHost('press-3', { hall: '', shall: '3' })
  await addHost('press-4', {})
  await addHost('stray', { hall: '3' }, '')
})
afterAll(() => platform.close())

describe('a filter by labels', () => {
  it('finds the hosts of the scope with exactly this label', async () => {
    expect(await names('metadata.labels.hall=3')).toEqual(['press-1'])
    expect(await names('metadata.labels.hall=31')).toEqual(['press-2'])
    expect(await names('metadata.labels.hall=')).toEqual(['press-3'])
    expect(await names('metadata.labels.hall=hall')).toEqual([])
    expect(await names('metadata.labels.line=a')).toEqual([])
    expect(await names('metadata.labels.plant.example/line=a')).toEqual(['press-1'])
    expect(await names('metadata.labels.hall=3', {})).toEqual(['stray'])
  })

  it('is combined with others', async () => {
    expect(await names('metadata.labels.hall=3ANDmetadata.name=press-1')).toEqual(['press-1'])
    expect(await names('metadata.labels.hall=3ANDmetadata.name=press-2')).toEqual([])
    expect(await names('metadata.labels.hall=3ORmetadata.labels.line=hall')).toEqual(['press-1', 'press-2'])
  })

  it('takes a value as it is, whatever its characters', async () => {
    for (const value of ['3","x":"y', '%', '3"', '\\', "3' OR 1=1 --", '_'])
      expect(await names(`metadata.labels.hall="${value.replace(/["\\]/g, '\\$&')}"`)).toEqual([])
  })

  it('follows a change of the labels', async () => {
    await ask(
      'PUT',
      `/v1/edgehosts/${uids.get('press-4')}/meta`,
      { metadata: { labels: { hall: '4' } } },
      inProject(),
    )
    expect(await names('metadata.labels.hall=4')).toEqual(['press-4'])
  })

  it('is refused without a key, and is no order', async () => {
    for (const query of ['filters=metadata.labels.=3', 'orderBy=metadata.labels.hall=1']) {
      const { status, json } = await ask('GET', `/v1/edgehosts?${query}`)
      expect([status, json.details?.field]).toEqual([400, query.split('=')[0]])
    }
  })
})

describe('labels and annotations that a host names of itself', () => {
  const name = 'labelled'
  const metadataOf = async (uid: string) => {
    const { json } = await ask('GET', `/v1/edgehosts/${uid}`, undefined, inProject())
    const { labels, annotations } = json.metadata
    return { labels, annotations }
  }
  const device = { archType: 'amd64', memory: { sizeInMB: 2_048 } }

  it('come with its registration and its facts, and are found', async () => {
    const token = await makeToken(name)
    const host = playEdgeHost(platform)
    const first = { labels: { hall: '9' }, annotations: { built: '2031' } }
    expect((await host.register(token, name, first)).status).toBe(200)
    expect(await metadataOf(host.uid)).toEqual(first)
    expect(await names('metadata.labels.hall=9')).toEqual([name])

    await host.logIn()
    const headers = { authorization: host.token }
    const report = (metadata: object) =>
      ask(
        'PUT',
        `/v1/edgehosts/${host.uid}`,
        { metadata, spec: { device, host: { hostAddress: '192.0.2.7' } } },
        headers,
      )
    expect((await report({ labels: { hall: '10' }, annotations: { checked: 'yes' } })).status).toBe(204)
    const second = { labels: { hall: '10' }, annotations: { built: '2031', checked: 'yes' } }
    expect(await metadataOf(host.uid)).toEqual(second)
    // What it does not name stays.
    expect((await report({})).status).toBe(204)
    expect(await metadataOf(host.uid)).toEqual(second)
    expect((await ask('DELETE', `/v1/edgehosts/${host.uid}`, undefined, inProject())).status).toBe(204)
  })

  it.each([
    [{ labels: { 'a b': '1' } }, 'metadata.labels.a b'],
    [{ labels: { hall: 'x'.repeat(64) } }, 'metadata.labels.hall'],
  ])('are refused with their field as Kubernetes refuses them: %j', async (metadata, field) => {
    const host = playEdgeHost(platform)
    const { status, json } = await host.register(await makeToken(JSON.stringify(metadata)), name, metadata)
    expect([status, json.details?.field]).toEqual([400, field])
  })
})

describe('the metadata of hosts', () => {
  it('is what a table shows, in the scope', async () => {
    const { edgeHosts, listmeta } = (await ask('GET', '/v1/edgehosts/metadata', undefined, inProject())).json
    expect(listmeta.count).toBe(4)
    expect(edgeHosts.at(-1)).toEqual({
      ...{ archType: 'amd64', edgeHostType: 'edge-native', name: 'press-1', state: 'ready' },
      uid: uids.get('press-1'),
    })
    const { edgeHosts: ofTenant } = (await ask('GET', '/v1/edgehosts/metadata')).json
    expect(ofTenant.map(({ name }) => name)).toEqual(['stray'])
  })

  it.each(['/v1/edgehosts', '/v1/edgehosts/metadata'])('knows one type of host at %s', async (path) => {
    expect((await ask('GET', `${path}?type=edge-native`)).status).toBe(200)
    const { status, json } = await ask('GET', `${path}?type=vsphere`)
    expect([status, json.details?.field]).toEqual([400, 'type'])
  })

  it('has filters, an order, fields and pages', async () => {
    const get = async (query: string) =>
      (await ask('GET', `/v1/edgehosts/metadata?${query}`, undefined, inProject())).json
    const first = await get('limit=2&orderBy=metadata.name=1&fields=name&type=edge-native')
    expect(first.edgeHosts).toEqual([{ name: 'press-1' }, { name: 'press-2' }])
    const next = await get(`limit=2&orderBy=metadata.name=1&fields=name&continue=${first.listmeta.continue}`)
    expect(next.edgeHosts).toEqual([{ name: 'press-3' }, { name: 'press-4' }])
    expect((await get('filters=metadata.labels.hall=3')).edgeHosts).toHaveLength(1)
    for (const url of ['/v1/edgehosts', '/v1/edgehosts/metadata']) {
      expect((await ask('GET', `${url}?type=edge-native`)).status).toBe(200)
      const refused = await ask('GET', `${url}?type=vsphere`)
      expect([refused.status, refused.json.details?.field]).toEqual([400, 'type'])
    }
  })

  it('shows the last heartbeat', async () => {
    const host = await addHost('press-5', {})
    await host.logIn()
    const url = `/v1/edgehosts/${host.uid}/health`
    const headers = { authorization: host.token }
    const states = async () => {
      platform.rooms.hosts.stop()
      const { edgeHosts } = (
        await ask('GET', '/v1/edgehosts/metadata?filters=metadata.name=press-5', undefined, inProject())
      ).json
      return edgeHosts.map(({ healthState }) => healthState)
    }
    expect(await states()).toEqual([undefined])
    for (const state of ['healthy', 'unhealthy', 'unhealthy', 'healthy']) {
      await ask('PATCH', url, { state }, headers)
      expect(await states()).toEqual([state])
    }
    await ask('DELETE', `/v1/edgehosts/${host.uid}`, undefined, inProject())
    expect(await states()).toEqual([])
  })
})

describe('a filter', () => {
  it('finds the same hosts whichever index it uses', async () => {
    const { sql } = platform.rooms.state.database
    const insert =
      sql.prepare(`INSERT INTO edge_host (uid, project_uid, host_uid, name, labels, annotations, public_key, reported, generation,
      is_used, is_twice, is_next_accepted, created_at, modified_at) VALUES (?, ?, ?, ?, '{"a":"b"}', '{}', '', ?, 0, 0, 0, 0, ?, 0)`)
    const project = (await ask('POST', '/v1/projects', { metadata: { name: 'many' } })).json.uid
    const all = Array.from({ length: 400 }, (_, number) => ({
      name: `h-${number}`,
      archType: number % 40 === 0 ? 'arm64' : 'amd64',
      version: String(11 + (number % 3)),
      cores: 2 + (number % 5),
    }))
    for (const [number, { name, archType, version, cores }] of all.entries()) {
      const reported = {
        device: { archType, os: { family: 'debian', version }, cpu: { cores } },
        hostAddress: '192.0.2.7',
        service: {},
      }
      insert.run(`uid-${number}`, project, `id-${number}`, name, JSON.stringify(reported), number)
    }
    const [arch, os, cores] = ['spec.device.archType', 'spec.device.os.version', 'spec.device.cpu.cores']
    const queries: [string, (host: (typeof all)[number]) => boolean][] = [
      [`${arch}=arm64`, (host) => host.archType === 'arm64'],
      [`${os}=12AND${arch}=arm64`, (host) => host.archType === 'arm64' && host.version === '12'],
      [
        `${arch}=arm64AND${os}=12AND${cores}=2`,
        (host) => host.archType === 'arm64' && host.version === '12' && host.cores === 2,
      ],
      [`${arch}=arm64OR${os}=12`, (host) => host.archType === 'arm64' || host.version === '12'],
      [`${os}=12ANDspec.device.os.family=debian`, (host) => host.version === '12'],
      [`metadata.name=h-7AND${arch}=amd64`, (host) => host.name === 'h-7'],
      [`metadata.name=h-7AND${arch}=arm64`, () => false],
      [`metadata.labels.a=bAND${os}=13`, (host) => host.version === '13'],
      [`metadata.labels.a=bANDspec.host.hostAddress=192.0.2.7`, () => true],
      [`metadata.uid=uid-9AND${os}=11`, (host) => host.name === 'h-9'],
    ]
    for (const [filters, matches] of queries)
      for (const order of [
        '',
        '&orderBy=metadata.name=1',
        '&orderBy=spec.device.cpu.cores=-1,metadata.name=1',
      ]) {
        const wanted = all.filter(matches).map(({ name }) => name)
        const found: string[] = []
        let token = ''
        do {
          const url = `/v1/edgehosts?filters=${encodeURIComponent(filters)}${order}&continue=${token}`
          const { items, listmeta } = (await ask('GET', url, undefined, { projectuid: project })).json
          expect(listmeta.count, filters).toBe(wanted.length)
          found.push(...items.map(({ metadata: { name } }) => name))
          token = listmeta.continue
        } while (token !== '')
        expect([...found].sort(), filters + order).toEqual([...wanted].sort())
        if (order === '') expect(found).toEqual(wanted.toReversed())
        if (order.startsWith('&orderBy=metadata')) expect(found).toEqual([...wanted].sort())
      }
  })
})

describe('the number of hosts and events of a scope', () => {
  it('is kept when hosts register, change and are removed', async () => {
    const count = async (headers: Headers) =>
      (await ask('GET', '/v1/edgehosts?limit=1', undefined, headers)).json.listmeta.count
    const rows = () =>
      Number(
        platform.rooms.state.database.sql
          .prepare('SELECT count(*) AS found FROM edge_host WHERE project_uid = ?')
          .get(projectUid)?.found,
      )
    const before = await count(inProject())
    expect(before).toBe(rows())
    const host = await addHost('press-6', { a: 'b' })
    await host.logIn()
    expect([await count(inProject()), rows()]).toEqual([before + 1, before + 1])
    await ask('DELETE', `/v1/edgehosts/${host.uid}`, undefined, inProject())
    expect([await count(inProject()), rows()]).toEqual([before, before])
    expect(await count({})).toBe(1)
    const empty = (await ask('POST', '/v1/projects', { metadata: { name: 'empty' } })).json.uid
    expect(await count({ projectuid: empty })).toBe(0)
  })

  it('is not held up by twenty users who filter at once', async () => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, async (_, user) =>
        ask(
          'GET',
          `/v1/edgehosts?filters=metadata.name=press-${user}ORmetadata.labels.hall=3`,
          undefined,
          inProject(),
        ),
      ),
    )
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
  })
})
