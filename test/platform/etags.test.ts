import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  clusterProfile,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../support/platform-clusters.ts'
import { createTestPlatform } from '../support/test-platform.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let headers: Record<string, string>
beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  headers = await platform.signIn('root@plant.example', password)
})
afterAll(() => platform.close())

async function ask(method: Method, url: string, payload?: object, ifMatch?: string) {
  const reply = await platform.app.inject({
    ...{ method, url, headers: { ...headers, ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }) } },
    ...(payload ? { payload } : {}),
  })
  return { status: reply.statusCode, body: reply.body, etag: reply.headers.etag }
}
const made = async (url: string, payload: object) => {
  const { status, body } = await ask('POST', url, payload)
  if (status !== 201) throw new Error(body)
  return (JSON.parse(body) as { uid: string }).uid
}

/** A resource, and a change of it by what is at its path. */
interface Single {
  readonly url: string
  readonly change: (name: string) => readonly [url: string, payload: object]
}
const labelled = (url: string): Single => ({
  url,
  change: (hall) => [url, { metadata: { labels: { hall } } }],
})
const singles: Readonly<Record<string, () => Promise<Single>>> = {
  async project() {
    const name = `p-${randomUUID()}`
    const url = `/v1/projects/${await made('/v1/projects', { metadata: { name } })}`
    return { url, change: (hall) => [url, { metadata: { name, labels: { hall } } }] }
  },
  async user() {
    const spec = { emailId: `${randomUUID()}@plant.example`, firstName: 'a', lastName: 'b' }
    const url = `/v1/users/${await made('/v1/users', { spec })}`
    const roles = ['viewer', 'operator', 'admin']
    let next = 0
    return { url, change: () => [`${url}/roles`, { roles: [roles[next++ % 3]] }] }
  },
  async 'API key'() {
    const { userUid } = JSON.parse((await ask('GET', '/v1/users/info')).body) as { userUid: string }
    const reply = await ask('POST', '/v1/apiKeys', {
      metadata: { name: `k-${randomUUID()}` },
      spec: { userUid, expiry: new Date(Date.now() + 86_400_000).toISOString() },
    })
    return labelled(`/v1/apiKeys/${(JSON.parse(reply.body) as { uid: string }).uid}`)
  },
  async token() {
    return labelled(
      `/v1/edgehosts/tokens/${await made('/v1/edgehosts/tokens', { metadata: { name: `t-${randomUUID()}` } })}`,
    )
  },
  async host() {
    const host = await joinedHost(platform, headers)
    const url = `/v1/edgehosts/${host.uid}`
    return { url, change: (hall) => [`${url}/meta`, { metadata: { labels: { hall } } }] }
  },
  async 'cluster profile'() {
    await uploadClusterPacks(platform, headers).catch(() => undefined)
    const uid = await importedProfile(platform, headers, clusterProfile(`c-${randomUUID()}`))
    const url = `/v1/clusterprofiles/${uid}`
    return {
      url,
      change: (defaultValue) => [`${url}/variables`, { variables: [{ name: 'USER', defaultValue }] }],
    }
  },
}

describe('of several changes of the same state, one is made', () => {
  it.each(Object.keys(singles))('%s', async (name) => {
    const { url, change } = await singles[name]!()
    const { etag } = await ask('GET', url)
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    const put = (value: string, ifMatch?: string) => {
      const [path, payload] = change(value)
      return ask('PUT', path, payload, ifMatch)
    }
    const six = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((value) => put(value, etag)))
    expect(six.map(({ status }) => status).sort()).toEqual([204, 412, 412, 412, 412, 412])
    expect(JSON.parse(six.find(({ status }) => status === 412)!.body)).toMatchObject({
      code: 'PreconditionFailed',
    })
    // Weak tags never match, and * always does; without the field nothing is asked.
    const { etag: next = '' } = await ask('GET', url)
    expect(next).not.toBe(etag)
    expect((await put('g', `W/${next}`)).status).toBe(412)
    expect((await put('h', `"other", ${next}`)).status).toBe(204)
    expect((await put('i', '*')).status).toBe(204)
    expect((await put('j')).status).toBe(204)
    expect((await ask('DELETE', url, undefined, etag)).status).toBe(412)
    const { etag: last } = await ask('GET', url)
    expect((await ask('DELETE', url, undefined, last)).status).toBe(204)
    expect((await ask('GET', url)).status).toBe(404)
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
