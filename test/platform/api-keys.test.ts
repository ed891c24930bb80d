import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'
import { dayMs, minuteMs } from '../support/turning-clock.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
interface Reply {
  readonly uid: string
  readonly apiKey: string
  readonly code: string
  readonly details?: { readonly field?: string }
  readonly spec: { readonly key: string }
  readonly status: { readonly isActive: boolean; readonly lastUsed?: string }
  readonly items: readonly unknown[]
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>
let adminUid: string

beforeAll(async () => {
  platform = await createTestPlatform()
  adminUid = await platform.addUser('root@plant.example', password, ['admin'])
  admin = await platform.signIn('root@plant.example', password)
})
afterAll(() => platform.close())

async function ask(
  method: Method,
  url: string,
  payload?: object,
  headers: Readonly<Record<string, string>> = admin,
) {
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  const json = (reply.body === '' || reply.body === 'null' ? {} : reply.json()) as Reply
  return { status: reply.statusCode, json, text: reply.body }
}

const inDays = (days: number) => new Date(platform.clock.now() + days * dayMs).toISOString()
const make = async (name: string, userUid?: string, days = 30) =>
  ask('POST', '/v1/apiKeys', {
    metadata: { name },
    spec: { expiry: inDays(days), ...(userUid === undefined ? {} : { userUid }) },
  })

describe('an API key', () => {
  it('is shown once, and has the roles of its user, in any spelling of the header', async () => {
    const { status, json } = await make('script')
    expect([status, json.apiKey]).toEqual([201, expect.stringMatching(/^[\w-]{43}$/)])
    for (const name of ['apiKey', 'ApiKey', 'APIKEY'])
      expect((await ask('GET', '/v1/users', undefined, { [name]: json.apiKey })).status).toBe(200)
    const shown = await ask('GET', `/v1/apiKeys/${json.uid}`)
    expect(shown.json.spec.key).toBe(json.apiKey.slice(0, 8))
    expect(shown.text).not.toContain(json.apiKey)
    expect((await ask('GET', '/v1/apiKeys')).text).not.toContain(json.apiKey)
    const viewerUid = await platform.addUser('viewer@plant.example', password, ['viewer'])
    const { apiKey } = (await make('reader', viewerUid)).json
    expect((await ask('GET', '/v1/projects', undefined, { apiKey })).status).toBe(200)
    expect((await ask('GET', '/v1/users', undefined, { apiKey })).status).toBe(403)
  })

  it('stands in no log line and no audit record, and the database has only its hash', async () => {
    const { apiKey } = (await make('secret')).json
    await ask('GET', '/v1/users', undefined, { apiKey })
    platform.rooms.audit.flush()
    const { sql } = platform.rooms.state.database
    const all = ['audit', 'audit_intent', 'api_key'].map((table) =>
      sql.prepare(`SELECT * FROM ${table}`).all(),
    )
    expect(JSON.stringify([platform.lines, all])).not.toContain(apiKey)
  })

  it('makes no keys, changes none, and shows no link to set a password', async () => {
    const { apiKey, uid } = (await make('limited')).json
    const own = { apiKey }
    const entity = { metadata: { name: 'more' }, spec: { expiry: inDays(1) } }
    expect((await ask('POST', '/v1/apiKeys', entity, own)).status).toBe(403)
    expect((await ask('PUT', `/v1/apiKeys/${uid}`, { spec: { expiry: inDays(60) } }, own)).status).toBe(403)
    expect((await ask('DELETE', `/v1/apiKeys/${uid}`, undefined, own)).status).toBe(403)
    expect((await ask('POST', `/v1/users/${adminUid}/activation`, {}, own)).status).toBe(403)
    const made = await ask('POST', '/v1/users', { spec: { emailId: 'by-key@plant.example' } }, own)
    const path = `/v1/users/${made.json.uid}`
    expect((await ask('GET', path, undefined, own)).text).not.toContain('activationLink')
    expect((await ask('GET', path)).text).toContain('activationLink')
  })

  it('makes no administrators, and gives its own user no roles', async () => {
    const own = { apiKey: (await make('no giver')).json.apiKey }
    const uid = await platform.addUser('plain@plant.example', password, ['viewer'])
    const mate = await platform.addUser('mate@plant.example', password, ['admin'])
    const project = (name: string, ...users: object[]) => ({ metadata: { name }, spec: { users } })
    const lead = { userId: mate, roles: ['admin'] }
    const led = (await ask('POST', '/v1/projects', project('led', lead))).json.uid
    const refusals = [
      ['POST', '/v1/users', { spec: { emailId: 'chief@plant.example', roles: ['viewer', 'admin'] } }],
      ['PUT', `/v1/users/${uid}/roles`, { roles: ['admin'] }],
      ['PUT', `/v1/users/${adminUid}/roles`, { roles: ['admin', 'operator'] }],
      ['POST', '/v1/projects', project('taken', { userId: uid, roles: ['admin'] })],
      ['PUT', `/v1/projects/${led}`, project('led', lead, { userId: uid, roles: ['admin'] })],
      ['PUT', `/v1/projects/${led}`, project('led', lead, { userId: adminUid, roles: ['viewer'] })],
    ] as const
    for (const [method, path, body] of refusals)
      expect([path, (await ask(method, path, body, own)).status]).toEqual([path, 403])
    expect((await ask('GET', `/v1/users/${uid}`)).json.spec).toMatchObject({ roles: ['viewer'] })
    // Who is an administrator already may stay so, and other roles are given.
    const kept = project('led', lead, { userId: uid, roles: ['operator'] })
    expect((await ask('PUT', `/v1/projects/${led}`, kept, own)).status).toBe(204)
    expect((await ask('PUT', `/v1/users/${mate}/roles`, { roles: ['admin', 'viewer'] }, own)).status).toBe(
      204,
    )
    expect((await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['operator'] }, own)).status).toBe(204)
    expect((await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['admin'] })).status).toBe(204)
    for (const each of [uid, mate]) await ask('DELETE', `/v1/users/${each}`)
    await ask('DELETE', `/v1/projects/${led}`)
  })

  it('ends at its expiry, when it is switched off, when it is deleted, and with its user', async () => {
    const userUid = await platform.addUser('leaver@plant.example', password, ['viewer'])
    const [short, off, gone, orphan] = [
      (await make('short', undefined, 1)).json,
      (await make('off')).json,
      (await make('gone')).json,
      (await make('orphan', userUid)).json,
    ]
    const works = async ({ apiKey }: Reply) =>
      (await ask('GET', '/v1/projects', undefined, { apiKey })).status === 200
    for (const each of [short, off, gone, orphan]) expect(await works(each)).toBe(true)
    await ask('PUT', `/v1/apiKeys/${off.uid}/state`, { isActive: false })
    await ask('DELETE', `/v1/apiKeys/${gone.uid}`)
    await ask('DELETE', `/v1/users/${userUid}`)
    platform.clock.turn(dayMs)
    for (const each of [short, off, gone, orphan]) expect(await works(each)).toBe(false)
    admin = await platform.signIn('root@plant.example', password)
    await ask('PUT', `/v1/apiKeys/${off.uid}/state`, { isActive: true })
    expect((await ask('PUT', `/v1/apiKeys/${short.uid}`, { spec: { expiry: inDays(1) } })).status).toBe(204)
    for (const each of [short, off]) expect(await works(each)).toBe(true)
  })

  it('has its last use written once a minute', async () => {
    const { apiKey, uid } = (await make('used')).json
    const use = () => ask('GET', '/v1/projects', undefined, { apiKey })
    const lastUsed = async () => (await ask('GET', `/v1/apiKeys/${uid}`)).json.status.lastUsed
    expect(await lastUsed()).toBeUndefined()
    await use()
    const first = await lastUsed()
    platform.clock.turn(minuteMs / 2)
    await use()
    expect(await lastUsed()).toBe(first)
    platform.clock.turn(minuteMs)
    await use()
    expect(await lastUsed()).not.toBe(first)
  })

  it.each([
    ['spec.expiry', { metadata: { name: 'x' }, spec: { expiry: '2020-01-01T00:00:00Z' } }],
    ['spec.expiry', { metadata: { name: 'x' }, spec: { expiry: '2099-01-01T00:00:00Z' } }],
    ['spec.expiry', { metadata: { name: 'x' }, spec: { expiry: 'soon' } }],
    ['spec.expiry', { metadata: { name: 'x' }, spec: { expiry: '2028-02-30T00:00:00Z' } }],
    [
      'spec.userUid',
      {
        metadata: { name: 'x' },
        spec: { expiry: '2027-01-01T00:00:00Z', userUid: '3f2c5e2e-93a4-4c43-8f0e-0123456789ab' },
      },
    ],
  ])('is refused for a wrong %s', async (field, body) => {
    const { status, json } = await ask('POST', '/v1/apiKeys', body)
    expect([status, json.details?.field]).toEqual([400, field])
  })
})
