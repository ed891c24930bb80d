import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCloudWorld, right, type CloudWorld } from '../support/platform-clouds.ts'
import {
  clusterEntity,
  clusterProfile,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../support/platform-clusters.ts'
import { packUpload, smallPack, smallProfile, tarOf } from '../support/platform-packs.ts'
import { playEdgeHost } from '../support/played-edge-host.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
interface Reply {
  readonly uid?: string
  readonly token?: string
  readonly code?: string
  readonly details?: { readonly field?: string }
  readonly items?: readonly { readonly metadata: { readonly uid: string } }[]
}

const password = 'a long password'
let world: CloudWorld
let platform: CloudWorld['platform']
let headers: Record<string, string>
let profileUid: string
beforeAll(async () => {
  world = await createCloudWorld()
  platform = world.platform
  headers = await platform.signIn('root@plant.example', password)
  await uploadClusterPacks(platform, headers)
  profileUid = await importedProfile(platform, headers, clusterProfile('of the clusters'))
})
afterAll(() => world.close())

async function ask(
  method: Method,
  url: string,
  payload?: object | Buffer,
  ifMatch?: string,
  more: object = {},
) {
  const reply = await platform.app.inject({
    ...{ method, url },
    headers: { ...headers, ...more, ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }) },
    ...(payload ? { payload } : {}),
  })
  const json: Reply = reply.body === '' || reply.body === 'null' ? {} : reply.json()
  return { status: reply.statusCode, body: reply.body, json, etag: reply.headers.etag }
}

/** What each noun of the platform can do, by the path of its list. */
interface Noun {
  /** The path of a creation, where it is another one. */
  readonly at?: string
  /** The body of a creation, or how one is made without such a body. */
  readonly body?: (name: string) => object | Promise<object>
  readonly make?: (name: string) => Promise<{ readonly status: number; readonly json: Reply }>
  /** Why another one cannot have the name, in other letters too. */
  readonly taken?: string
  /** A body that is refused, and the field that its refusal names. */
  readonly wrong?: readonly [body: object, field: string]
  /** A change of one with a name, by PUT: what is behind its path, and the body with a value of its own. */
  readonly change?: (name: string, value: string) => readonly [path: string, body: object]
  /** A deletion waits for the host. */
  readonly staysDeleted?: true
}
const named = (name: string, spec?: object) => ({ metadata: { name }, ...(spec ? { spec } : {}) })
const labelled = (_name: string, hall: string) => ['', { metadata: { labels: { hall } } }] as const
const expiry = new Date(Date.now() + 86_400_000).toISOString()
const nouns: Readonly<Record<string, Noun>> = {
  '/v1/projects': {
    ...{ body: named, taken: 'ProjectExists', wrong: [{ metadata: {} }, 'metadata.name'] },
    change: (name, hall) => ['', { metadata: { name, labels: { hall } } }],
  },
  '/v1/users': {
    body: (name) => ({ spec: { emailId: `${name}@plant.example` } }),
    ...{ taken: 'UserExists', wrong: [{ spec: { emailId: 'no address' } }, 'spec.emailId'] },
    change: (_name, value) => [
      '/roles',
      { roles: [['viewer', 'operator', 'admin'][value.charCodeAt(0) % 3]] },
    ],
  },
  '/v1/apiKeys': {
    ...{ body: (name) => named(name, { expiry }), taken: 'KeyExists', change: labelled },
    wrong: [{ metadata: {}, spec: { expiry } }, 'metadata.name'],
  },
  '/v1/edgehosts/tokens': {
    ...{ body: named, taken: 'TokenExists', wrong: [{ metadata: {} }, 'metadata.name'], change: labelled },
  },
  '/v1/edgehosts': {
    // By its registration.
    async make(name) {
      const { json } = await ask('POST', '/v1/edgehosts/tokens', named(randomUUID()))
      const reply = await playEdgeHost(platform).register(json.token ?? '', name)
      const uid = reply.json.metadata?.uid ?? ''
      return { status: reply.status === 200 ? 201 : reply.status, json: { ...reply.json, uid } }
    },
    ...{ taken: 'HostNameExists', change: (name, hall) => ['/meta', labelled(name, hall)[1]] },
  },
  '/v1/packs': {
    make(name) {
      const { payload, headers: more } = packUpload(tarOf(smallPack(name)))
      return ask('POST', '/v1/packs', payload, undefined, more)
    },
    taken: 'PackExists',
  },
  '/v1/clusterprofiles': {
    ...{ at: '/v1/clusterprofiles/import', body: (name) => smallProfile(name), taken: 'ProfileExists' },
    change: (_name, defaultValue) => ['/variables', { variables: [{ name: 'USER', defaultValue }] }],
  },
  '/v1/spectroclusters': {
    at: '/v1/spectroclusters/edge-native',
    body: async (name) => clusterEntity((await joinedHost(platform, headers)).uid, profileUid, { name }),
    ...{ wrong: [{ metadata: {} }, 'spec'], staysDeleted: true },
  },
  '/v1/cloudaccounts/vendor': {
    ...{ body: (name) => named(name, right), taken: 'CloudAccountExists' },
    wrong: [{ metadata: {}, spec: right }, 'metadata.name'],
  },
  '/v1/cloudconfigs/vendorke': {
    async body(name) {
      const cloudAccountRef = { uid: (await world.newAccount()).uid }
      return named(name, { cloudAccountRef, machinePoolConfig: [{ name: 'workers', tags: ['plant'] }] })
    },
    ...{ taken: 'CloudConfigExists', wrong: [{ metadata: {} }, 'spec'] },
  },
}

it('every noun that can be deleted is in the table', () => {
  const deletions = platform.rooms.api.table.routes.filter(({ method }) => method === 'DELETE')
  const paths = deletions.map(({ url }) => url.replace(/\/:[A-Za-z]+$/, ''))
  expect(paths.sort()).toEqual(Object.keys(nouns).sort())
})

describe.each(Object.entries(nouns))('one of %s', (list, { at = list, body, make, taken, ...noun }) => {
  const create = async (name: string) => make?.(name) ?? ask('POST', at, await body?.(name))
  const made = async (name = `n-${randomUUID()}`) => {
    const { status, json } = await create(name)
    expect([status, json], name).toEqual([
      201,
      expect.objectContaining({ uid: expect.any(String) as string }),
    ])
    return { name, uid: json.uid, url: `${list}/${json.uid}` }
  }
  const isListed = async (uid: string | undefined) =>
    (await ask('GET', `${list}?filters=metadata.uid=${uid}`)).json.items?.map(({ metadata }) => metadata.uid)

  it('is created, shown, listed and deleted', async () => {
    const { uid, url } = await made()
    const { status, body: shown, etag = '' } = await ask('GET', url)
    expect([status, shown]).toEqual([200, expect.stringContaining(`"${uid}"`)])
    expect(await isListed(uid)).toEqual([uid])
    expect((await ask('DELETE', url, undefined, '"other"')).status).toBe(412)
    expect((await ask('DELETE', url, undefined, etag)).status).toBe(204)
    if (noun.staysDeleted) return
    for (const method of ['GET', 'DELETE'] as const) expect((await ask(method, url)).status, method).toBe(404)
    expect(await isListed(uid)).toEqual([])
  })

  if (taken !== undefined)
    it('has a name that no other one has, whatever its case', async () => {
      const { name } = await made()
      for (const other of [name, name.toUpperCase()]) {
        const { status, json } = await create(other)
        expect([status, json.code], other).toEqual([409, taken])
      }
    })

  const { wrong, change } = noun
  if (wrong)
    it('is refused with the name of the field that is wrong', async () => {
      const [refused, field] = wrong
      const { status, json } = await ask('POST', at, refused)
      expect([status, json.code, json.details?.field]).toEqual([400, 'BadRequest', field])
    })

  if (change)
    it('of several changes of the same state, one is made', async () => {
      const { name, url } = await made()
      const { etag } = await ask('GET', url)
      expect(etag).toMatch(/^"[\w-]{22}"$/)
      const put = (value: string, ifMatch?: string) => {
        const [path, payload] = change(name, value)
        return ask('PUT', `${url}${path}`, payload, ifMatch)
      }
      const six = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((value) => put(value, etag)))
      expect(six.map(({ status }) => status).sort()).toEqual([204, 412, 412, 412, 412, 412])
      expect(six.find(({ status }) => status === 412)?.json.code).toBe('PreconditionFailed')
      // Weak tags never match, and * always does; without the field nothing is asked.
      const { etag: next = '' } = await ask('GET', url)
      expect(next).not.toBe(etag)
      expect((await put('g', `W/${next}`)).status).toBe(412)
      expect((await put('h', `"other", ${next}`)).status).toBe(204)
      expect((await put('i', '*')).status).toBe(204)
      expect((await put('j')).status).toBe(204)
      expect((await ask('DELETE', url, undefined, etag)).status).toBe(412)
    })
})

it('a heartbeat of a host changes no ETag', async () => {
  const host = await joinedHost(platform, headers)
  const url = `/v1/edgehosts/${host.uid}`
  const { etag } = await ask('GET', url)
  await platform.app.inject({
    ...{ method: 'PATCH', url: `${url}/health`, payload: { state: 'healthy' } },
    headers: { authorization: host.token },
  })
  await expect.poll(async () => (await ask('GET', url)).body).toContain('"healthy"')
  expect((await ask('GET', url)).etag).toBe(etag)
})
