import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
interface Reply {
  readonly uid: string
  readonly code: string
  readonly details?: { readonly field?: string }
  readonly metadata: Readonly<Record<string, unknown>>
  readonly spec: { readonly users: readonly unknown[] }
  readonly listmeta: { readonly count: number }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>
let member: Readonly<Record<string, string>>
let memberUid: string

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  memberUid = await platform.addUser('member@plant.example', password)
  admin = await platform.signIn('root@plant.example', password)
  member = await platform.signIn('member@plant.example', password)
})
afterAll(() => platform.close())

async function ask(method: Method, url: string, payload?: object, headers = admin) {
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  const json = (reply.body === '' || reply.body === 'null' ? {} : reply.json()) as Reply
  return { status: reply.statusCode, json, text: reply.body }
}

const make = async (name: string, more: object = {}) =>
  (await ask('POST', '/v1/projects', { metadata: { name, ...more } })).json.uid

const annotate = (uid: string, annotations: object) =>
  ask('PUT', `/v1/projects/${uid}`, { metadata: { name: 'north', annotations }, spec: {} })

describe('a project', () => {
  it('is made, shown, listed and deleted', async () => {
    const uid = await make('north', { labels: { plant: 'a' }, annotations: { 'note/x': '1' } })
    const users = [{ userId: memberUid, roles: ['operator'] }]
    const metadata = { name: 'north', labels: { plant: 'b' }, annotations: { other: '2' } }
    expect((await ask('PUT', `/v1/projects/${uid}`, { metadata, spec: { users } })).status).toBe(204)
    const { json } = await ask('GET', `/v1/projects/${uid}`)
    expect(json).toMatchObject({
      metadata: { name: 'north', uid, labels: { plant: 'b' }, annotations: { 'note/x': '1', other: '2' } },
      spec: { users },
    })
    // An empty value removes an annotation, and there are at most 64.
    expect((await annotate(uid, { other: '' })).status).toBe(204)
    const many = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`key-${index}`, 'x']))
    expect((await annotate(uid, many)).json).toMatchObject({
      code: 'BadRequest',
      details: { field: 'metadata.annotations' },
    })
    expect((await ask('GET', `/v1/projects/${uid}`)).json).toMatchObject({
      metadata: { annotations: { 'note/x': '1' } },
    })
    // What a reply gave may be sent back.
    expect((await ask('PUT', `/v1/projects/${uid}`, json)).status).toBe(204)
    await make('east')
    const list = await ask(
      'GET',
      '/v1/projects?orderBy=metadata.name=1&filters=metadata.name=eastORmetadata.name=north',
    )
    expect(list.json.items.map(({ metadata: { name } }) => name)).toEqual(['east', 'north'])
    const cleaned = await ask('DELETE', `/v1/projects/${uid}?cleanupProjectResources=true`)
    expect([cleaned.status, cleaned.json.details?.field]).toEqual([400, 'cleanupProjectResources'])
    expect((await ask('DELETE', `/v1/projects/${uid}?cleanupProjectResources=false`)).status).toBe(204)
    expect((await ask('GET', `/v1/projects/${uid}`)).json.code).toBe('ProjectNotFound')
  })

  it.each([
    ['metadata.uid', { metadata: { name: 'fixed', uid: randomUUID() } }],
    [
      'metadata.creationTimestamp',
      { metadata: { name: 'fixed', creationTimestamp: '2020-01-01T00:00:00Z' } },
    ],
    ['metadata.name', { metadata: { name: 'other' } }],
    ['status', { metadata: { name: 'fixed' }, status: { isDisabled: true } }],
    [
      'spec.users[0].userId',
      { metadata: { name: 'fixed' }, spec: { users: [{ userId: randomUUID(), roles: ['viewer'] }] } },
    ],
  ])('refuses a change of %s, and names it', async (field, body) => {
    const uid = (await ask('GET', '/v1/projects?filters=metadata.name=fixed')).json.items.length
      ? (
          (await ask('GET', '/v1/projects?filters=metadata.name=fixed')).json.items[0]!
            .metadata as unknown as Reply
        ).uid
      : await make('fixed')
    const { status, json } = await ask('PUT', `/v1/projects/${uid}`, body)
    expect([status, json.details?.field]).toEqual([400, field])
  })
})

describe('a user with roles in projects only', () => {
  it('lists and sees the projects with a role, and no others', async () => {
    const users = [{ userId: memberUid, roles: ['viewer'] }]
    const seen = await make('seen', { labels: { of: 'member' } })
    await ask('PUT', `/v1/projects/${seen}`, { metadata: { name: 'seen' }, spec: { users } })
    const hidden = await make('hidden')
    const list = await ask(
      'GET',
      '/v1/projects?filters=metadata.name=seenORmetadata.name=hidden',
      undefined,
      member,
    )
    expect(list.json.items.map(({ metadata: { name } }) => name)).toEqual(['seen'])
    const page = await ask('GET', '/v1/projects?limit=1&fields=metadata.name', undefined, member)
    expect([page.json.items, page.json.listmeta.count]).toEqual([[{ metadata: { name: 'seen' } }], 1])
    const get = async (uid: string) => (await ask('GET', `/v1/projects/${uid}`, undefined, member)).status
    expect([await get(seen), await get(hidden), await get(randomUUID())]).toEqual([200, 404, 404])
    await ask('PUT', `/v1/projects/${seen}`, { metadata: { name: 'seen' }, spec: { users: [] } })
    expect(await get(seen)).toBe(404)
    const info = await ask('GET', '/v1/users/info', undefined, member)
    expect(info.json).toMatchObject({ userUid: memberUid })
    // A role for the tenant shows all.
    expect((await ask('GET', '/v1/projects')).json.listmeta.count).toBeGreaterThan(1)
  })
})

describe('the scope of a request', () => {
  it('is checked: unknown projects and those without a role get the same answer', async () => {
    const own = await make('own')
    const users = [{ userId: memberUid, roles: ['viewer'] }]
    await ask('PUT', `/v1/projects/${own}`, { metadata: { name: 'own' }, spec: { users } })
    const other = await make('others')
    const status = async (projectuid: string, who = member) =>
      (await ask('GET', '/v1/users', undefined, { ...who, projectuid })).json.code
    // Known, and then it does not count: users are the tenant's.
    expect([await status(own), await status(other), await status(randomUUID()), await status('x')]).toEqual([
      'Forbidden',
      'ProjectNotFound',
      'ProjectNotFound',
      'ProjectNotFound',
    ])
    expect([await status(other, admin), await status(randomUUID(), admin)]).toEqual([
      undefined,
      'ProjectNotFound',
    ])
  })

  it('is refused where header and query differ', async () => {
    const [one, two] = [await make('one'), await make('two')]
    const both = (query: string) =>
      ask('GET', `/v1/projects?ProjectUid=${query}`, undefined, { ...admin, projectuid: one })
    expect((await both(one)).status).toBe(200)
    expect((await both(two)).json.details?.field).toBe('ProjectUid')
    expect((await ask('GET', `/v1/projects?ProjectUid=${one}&ProjectUid=${two}`)).status).toBe(400)
  })
})
