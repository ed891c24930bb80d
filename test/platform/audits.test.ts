import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { playEdgeHost } from '../support/played-edge-host.ts'
import { createTestPlatform } from '../support/test-platform.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Headers = Readonly<Record<string, string>>
interface Item {
  readonly metadata: { readonly uid: string; readonly number: number; readonly creationTimestamp: string }
  readonly spec: {
    readonly actionMsg: string
    readonly actor: {
      readonly actorType: string
      readonly serviceName?: string
      readonly project?: object
      readonly user?: { readonly uid: string; readonly emailId: string }
    }
    readonly resource: { readonly kind: string; readonly uid: string }
    readonly outcome: string
  }
}
interface Reply {
  readonly uid: string
  readonly token: string
  readonly isIntact: boolean
  readonly items: readonly Item[]
  readonly listmeta: { readonly count: number; readonly continue: string }
  readonly details?: { readonly field?: string }
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Headers
let operator: Headers
let adminUid: string
let operatorUid: string
let projectUid: string
let hostUid: string

async function ask(method: Method, url: string, payload?: object, headers: Headers = admin) {
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  const json = (reply.body === '' || reply.body === 'null' ? {} : reply.json()) as Reply
  return { status: reply.statusCode, json, text: reply.body, auditUid: String(reply.headers.audituid) }
}

const list = async (query: string) => (await ask('GET', `/v1/audits?${query}`)).json
const one = async (auditUid: string) => {
  const { items, listmeta } = await list(`filters=metadata.uid=${auditUid}`)
  expect(listmeta.count).toBe(1)
  return items[0]!
}

beforeAll(async () => {
  platform = await createTestPlatform()
  adminUid = await platform.addUser('root@plant.example', password, ['admin'])
  operatorUid = await platform.addUser('olga@plant.example', password)
  admin = await platform.signIn('root@plant.example', password)
  const users = [{ userId: operatorUid, roles: ['operator'] }]
  projectUid = (await ask('POST', '/v1/projects', { metadata: { name: 'north' }, spec: { users } })).json.uid
  operator = await platform.signIn('olga@plant.example', password)
  const { token } = (
    await ask('POST', '/v1/edgehosts/tokens', {
      metadata: { name: 'north' },
      spec: { defaultProjectUid: projectUid },
    })
  ).json
  const host = playEdgeHost(platform)
  await host.register(token)
  hostUid = host.uid
  await host.logIn()
})
afterAll(() => platform.close())

describe('a record of the platform', () => {
  it('names the user and the project of a change', async () => {
    const headers = { ...operator, projectuid: projectUid }
    const change = await ask(
      'PUT',
      `/v1/edgehosts/${hostUid}/meta`,
      { metadata: { labels: { hall: '3' } } },
      headers,
    )
    expect(change.status).toBe(204)
    const { spec } = await one(change.auditUid)
    expect(spec).toMatchObject({
      actionType: 'update',
      actor: {
        actorType: 'user',
        project: { name: 'north', uid: projectUid },
        user: { emailId: 'olga@plant.example', uid: operatorUid },
        role: 'operator',
        address: '127.0.0.1',
      },
      outcome: 'success',
      resource: { kind: 'edgeHost', uid: hostUid },
      status: 204,
    })
  })

  it('of a registration and of a first login names the host as the actor', async () => {
    const { items } = await list(`resourceUid=${hostUid}&resourceKind=edgeHost`)
    const own = items.filter(({ spec }) => spec.actor.actorType === 'service')
    const device = (
      await platform.app.inject({
        url: `/v1/edgehosts/${hostUid}`,
        headers: { ...admin, projectuid: projectUid },
      })
    ).json<{
      metadata: { name: string }
    }>()
    expect(own.map(({ spec }) => [spec.actionMsg, spec.actor.serviceName, spec.actor.user])).toEqual([
      [expect.stringContaining('for the first time'), device.metadata.name, undefined],
      [expect.stringContaining('Register'), device.metadata.name, undefined],
    ])
  })

  it('of the tenant names no project, also where the request names one', async () => {
    const { auditUid } = await ask(
      'POST',
      '/v1/projects',
      { metadata: { name: 'east' } },
      {
        ...admin,
        projectuid: projectUid,
      },
    )
    const { actor } = (await one(auditUid)).spec
    expect([actor.project, actor.user?.uid]).toEqual([undefined, adminUid])
  })

  it('names the user of a sign-in, right or wrong, and no user where the address is unknown', async () => {
    const signIn = async (emailId: string, typed: string) => {
      const { auditUid } = await ask('POST', '/v1/auth/authenticate', { emailId, password: typed }, {})
      const { actor, resource } = (await one(auditUid)).spec
      return [actor.user?.uid, actor.user?.emailId, resource.kind]
    }
    expect(await signIn('Olga@plant.example', password)).toEqual([operatorUid, 'olga@plant.example', 'token'])
    expect(await signIn('olga@plant.example', 'wrong')).toEqual([operatorUid, 'olga@plant.example', 'token'])
    expect(await signIn('who@plant.example', 'wrong')).toEqual(['', '', 'token'])
  })

  it('of the registration and the first login of a host is of its project', async () => {
    const { items } = await list(`projectUid=${projectUid}&resourceUid=${hostUid}&orderBy=metadata.number=1`)
    expect(items.slice(0, 2).map(({ spec }) => [spec.actionMsg.includes('Register'), spec.outcome])).toEqual([
      [true, 'success'],
      [false, 'success'],
    ])
  })

  it('keeps the address of a user and the uid of a project that are gone', async () => {
    const { uid: userId } = (
      await ask('POST', '/v1/users', { spec: { emailId: 'gone@plant.example', firstName: 'Gil' } })
    ).json
    const { auditUid } = await ask('PUT', `/v1/users/${userId}/roles`, { roles: ['viewer'] })
    const before = (await one(auditUid)).spec
    await ask('DELETE', `/v1/users/${userId}`)
    expect((await one(auditUid)).spec).toEqual(before)
    expect(before.resource.uid).toBe(userId)
  })
})

describe('the list of audits', () => {
  it('is selected by each parameter, and by several at once', async () => {
    const everyItem = async (query: string, holds: (item: Item) => boolean) => {
      const { items, listmeta } = await list(query)
      expect(listmeta.count, query).toBeGreaterThan(0)
      expect(items.every(holds), query).toBe(true)
    }
    await everyItem(`userUid=${operatorUid}`, ({ spec }) => spec.actor.user?.uid === operatorUid)
    await everyItem(`resourceKind=project`, ({ spec }) => spec.resource.kind === 'project')
    await everyItem(`resourceUid=${hostUid}`, ({ spec }) => spec.resource.uid === hostUid)
    await everyItem(`projectUid=${projectUid}`, ({ spec }) => spec.actor.project !== undefined)
    await everyItem(
      `projectUid=${projectUid}&userUid=${operatorUid}&actionType=update`,
      ({ spec }) => spec.resource.kind === 'edgeHost' && spec.actor.user?.uid === operatorUid,
    )
    const tenantUid = platform.app.inject({ method: 'GET', url: '/v1/users/info', headers: admin })
    const all = await list(`tenantUid=${(await tenantUid).json<{ tenantUid: string }>().tenantUid}`)
    expect(all.listmeta.count).toBeGreaterThan(10)
    for (const none of ['userUid', 'projectUid', 'resourceUid', 'tenantUid'])
      expect((await list(`${none}=${randomUUID()}`)).listmeta.count).toBe(0)
  })

  it('is bounded by times, and refuses what is none', async () => {
    const [newest, ...others] = (await list('limit=3')).items
    const since = `startTime=${newest!.metadata.creationTimestamp}&filters=metadata.number=${newest!.metadata.number}`
    expect((await list(since)).listmeta.count).toBe(1)
    const until = others.at(-1)!.metadata
    const { items } = await list(`endTime=${until.creationTimestamp}`)
    expect(items[0]!.metadata.creationTimestamp <= until.creationTimestamp).toBe(true)
    const refused = await ask('GET', '/v1/audits?startTime=2026-02-30T08:00:00Z')
    expect([refused.status, refused.json.details?.field]).toEqual([400, 'startTime'])
    const field = await ask('GET', '/v1/audits?filters=spec.actionMsg=x')
    expect([field.status, field.json.details?.field]).toEqual([400, 'filters'])
  })

  it('has pages, fields and an order as every list', async () => {
    const first = await list('limit=2&orderBy=metadata.number=1&fields=metadata.number')
    expect(first.items).toEqual([{ metadata: { number: 1 } }, { metadata: { number: 2 } }])
    const next = await list(
      `limit=2&orderBy=metadata.number=1&fields=metadata.number&continue=${first.listmeta.continue}`,
    )
    expect(next.items).toEqual([{ metadata: { number: 3 } }, { metadata: { number: 4 } }])
    // A token of one query is none of another.
    const other = await ask('GET', `/v1/audits?userUid=${adminUid}&continue=${first.listmeta.continue}`)
    expect([other.status, other.json.details?.field]).toEqual([400, 'continue'])
  })

  it('has no secret', async () => {
    const { text } = await ask('GET', '/v1/audits')
    expect(text).not.toContain(password)
    expect(text).not.toContain(admin.authorization)
  })
})

describe('the trail of the platform', () => {
  it('is verified, and shows when a uid was altered, taken or added', async () => {
    const verify = async () => (await ask('GET', '/v1/audits/verify')).json.isIntact
    expect(await verify()).toBe(true)
    const { sql } = platform.rooms.state.database
    sql.exec('DROP TRIGGER audit_is_not_altered')
    for (const [column, where] of [
      ['project_uid', "project_uid <> ''"],
      ['actor_uid', "actor_uid <> ''"],
      ['actor_uid', "actor_uid = ''"],
    ] as const) {
      const row = sql.prepare(`SELECT seq, ${column} AS was FROM audit WHERE ${where} LIMIT 1`).get()!
      const set = sql.prepare(`UPDATE audit SET ${column} = ? WHERE seq = ?`)
      set.run(randomUUID(), row.seq!)
      expect(await verify()).toBe(false)
      if (row.was !== '') {
        set.run('', row.seq!)
        expect(await verify()).toBe(false)
      }
      set.run(row.was!, row.seq!)
      expect(await verify()).toBe(true)
    }
  })

  it('is downloaded with both uids, so that it can be verified elsewhere', async () => {
    const reply = await platform.app.inject({ method: 'GET', url: '/v1/audits/download', headers: admin })
    expect(reply.headers['content-disposition']).toContain('edgeplatformd-audit-')
    expect(reply.body).toContain(`"actorUid":"${operatorUid}","projectUid":"${projectUid}"`)
  })
})

describe('a record of a change', () => {
  it('says what changed, old and new by name: who made a user an administrator, and of which project', async () => {
    const made = await ask('POST', '/v1/users', {
      spec: { emailId: 'nora@plant.example', roles: ['viewer'] },
    })
    const { uid } = made.json
    const raised = await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['admin'] })
    expect((await one(raised.auditUid)).spec).toMatchObject({
      actionMsg: expect.stringContaining('roles: viewer -> admin'),
      actor: { user: { emailId: 'root@plant.example' } },
      resource: { name: 'nora@plant.example', uid },
    })
    const removed = await ask('DELETE', `/v1/users/${uid}`)
    expect((await one(removed.auditUid)).spec.actionMsg).toContain('roles: admin -> none')

    const north = await ask('POST', '/v1/projects', { metadata: { name: 'audited' } })
    const users = [{ userId: operatorUid, roles: ['admin'] }]
    const metadata = { name: 'audited', labels: { hall: '3' }, annotations: { note: 'a secret text' } }
    const changed = await ask('PUT', `/v1/projects/${north.json.uid}`, { metadata, spec: { users } })
    const { actionMsg } = (await one(changed.auditUid)).spec
    expect(actionMsg).toContain('labels.hall: none -> 3; roles.olga@plant.example: none -> admin')
    expect(actionMsg).not.toContain('a secret text')
  })

  it('of a token that is switched off says so', async () => {
    const { uid } = (await ask('POST', '/v1/edgehosts/tokens', { metadata: { name: 'switched' } })).json
    const off = await ask('PUT', `/v1/edgehosts/tokens/${uid}/state`, { isActive: false })
    const { spec } = await one(off.auditUid)
    expect([spec.actionMsg, spec.resource]).toEqual([
      expect.stringContaining('isActive: true -> false'),
      expect.objectContaining({ name: 'switched' }),
    ])
  })
})
