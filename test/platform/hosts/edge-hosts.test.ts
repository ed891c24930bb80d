import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { dayMs, minuteMs } from '../../support/turning-clock.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
interface Reply {
  readonly uid: string
  readonly token: string
  readonly code: string
  readonly message: string
  readonly details?: { readonly field?: string }
  readonly spec: { readonly token: string }
  readonly status: { readonly hosts: number; readonly isDuplicate?: boolean }
  readonly listmeta: { readonly count: number }
  readonly items: readonly { readonly metadata: { readonly name: string; readonly uid: string } }[]
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>
let projectUid: string

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  await signIn()
  projectUid = (await ask('POST', '/v1/projects', { metadata: { name: 'north' } })).json.uid
})
afterAll(() => platform.close())

const signIn = async () => {
  admin = await platform.signIn('root@plant.example', password)
}

async function ask(method: Method, url: string, payload?: object, headers = admin) {
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  const json = (reply.body === '' || reply.body === 'null' ? {} : reply.json()) as Reply
  return { status: reply.statusCode, json, text: reply.body }
}

let made = 0
async function makeToken(spec: object = {}) {
  const name = `token ${(made += 1)}`
  return (await ask('POST', '/v1/edgehosts/tokens', { metadata: { name }, spec })).json
}

/** A host that is registered. */
async function registered(spec: object = {}) {
  const host = playEdgeHost(platform)
  await host.register((await makeToken(spec)).token)
  return host
}

describe('a registration token', () => {
  it('is shown once, ends after a week, and counts its hosts', async () => {
    const { uid, token } = await makeToken({ defaultProjectUid: projectUid })
    expect(token).toMatch(/^[\w-]{32}$/)
    const shown = await ask('GET', `/v1/edgehosts/tokens/${uid}`)
    expect(shown.json.spec.token).toBe(token.slice(0, 8))
    expect(shown.text).not.toContain(token)
    const first = playEdgeHost(platform)
    expect((await first.register(token)).status).toBe(200)
    expect((await ask('GET', `/v1/edgehosts/tokens/${uid}`)).json.status.hosts).toBe(1)
    platform.clock.turn(7 * dayMs)
    expect((await playEdgeHost(platform).register(token)).json.code).toBe('RegistrationTokenRefused')
    // The record shows no more than the host knows.
    expect((await first.register(token)).status).toBe(200)
    await signIn()
  })

  it('registers 10,000 hosts of a project at most, and there are 1,000 tokens at most', async () => {
    const { database } = platform.rooms.state
    const made = await ask('POST', '/v1/projects', { metadata: { name: 'crowded' } })
    const { token } = await makeToken({ defaultProjectUid: made.json.uid })
    const [last, more] = [playEdgeHost(platform), playEdgeHost(platform)]
    const setCount = (number: number) =>
      database.sql
        .prepare('INSERT OR REPLACE INTO edge_host_count (project_uid, number) VALUES (?, ?)')
        .run(made.json.uid, number)
    setCount(9_999)
    expect((await last.register(token)).status).toBe(200)
    expect(await more.register(token)).toMatchObject({ status: 409, json: { code: 'LimitReached' } })
    // A host that is there may register again.
    expect((await last.register(token)).status).toBe(200)
    setCount(1)

    database.sql
      .exec(`WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1000)
      INSERT INTO registration_token SELECT 'many-' || n, 'many-' || n, 'many-' || n, '', 'many-' || n, '', '{}', '{}', 0, 0, 0, 0, 0, 0
      FROM number`)
    const refused = await ask('POST', '/v1/edgehosts/tokens', { metadata: { name: 'one more' } })
    expect(refused).toMatchObject({ status: 409, json: { code: 'LimitReached' } })
    database.sql.exec("DELETE FROM registration_token WHERE uid LIKE 'many-%'")
  })

  it('is refused when it is unknown, switched off, deleted or used up', async () => {
    const code = async (token: string) => (await playEdgeHost(platform).register(token)).json.code
    expect(await code('unknown')).toBe('RegistrationTokenRefused')
    const off = await makeToken()
    await ask('PUT', `/v1/edgehosts/tokens/${off.uid}/state`, { isActive: false })
    expect(await code(off.token)).toBe('RegistrationTokenRefused')
    await ask('PUT', `/v1/edgehosts/tokens/${off.uid}/state`, { isActive: true })
    expect(await code(off.token)).toBeUndefined()
    const one = await makeToken({ maximumHosts: 1 })
    expect([await code(one.token), await code(one.token)]).toEqual([undefined, 'RegistrationTokenRefused'])
    await ask('PUT', `/v1/edgehosts/tokens/${one.uid}`, { spec: { maximumHosts: 2 } })
    expect(await code(one.token)).toBeUndefined()
    await ask('DELETE', `/v1/edgehosts/tokens/${off.uid}`)
    expect(await code(off.token)).toBe('RegistrationTokenRefused')
  })

  it('needs a project that is there', async () => {
    const wrong = { metadata: { name: 'wrong' }, spec: { defaultProjectUid: randomUUID() } }
    expect((await ask('POST', '/v1/edgehosts/tokens', wrong)).json.details?.field).toBe(
      'spec.defaultProjectUid',
    )
  })

  it('is not for another project than a client means that sends it in the field of replies', async () => {
    const spec = { defaultProject: { uid: projectUid } }
    const refused = [400, expect.objectContaining({ field: 'spec.defaultProject' })]
    const made = await ask('POST', '/v1/edgehosts/tokens', { metadata: { name: 'copied' }, spec })
    expect([made.status, made.json.details]).toEqual(refused)
    const { uid } = await makeToken({})
    const path = `/v1/edgehosts/tokens/${uid}`
    const changed = await ask('PUT', path, { spec })
    expect([changed.status, changed.json.details]).toEqual(refused)
    const named = { defaultProjectUid: projectUid, ...spec }
    expect((await ask('PUT', path, { spec: named })).status).toBe(204)
    // As the reply has it.
    expect((await ask('PUT', path, { spec })).status).toBe(204)
  })
})

describe('a registration', () => {
  it('shows its record to a token of its project; its id and public key alone get uid and project', async () => {
    const { token } = await makeToken({ defaultProjectUid: projectUid })
    const host = playEdgeHost(platform)
    expect((await host.register(token, 'secret-name')).json.metadata?.name).toBe('secret-name')
    for (const wrong of ['wrong', (await makeToken()).token])
      for (const query of ['', '?dryRun=true']) {
        const reply = await host.ask(query, wrong)
        expect([reply.status, reply.json]).toEqual([
          200,
          {
            aclmeta: { projectUid, tenantUid: expect.any(String) },
            metadata: { uid: host.uid },
            projectName: expect.any(String),
          },
        ])
      }
    expect((await host.register(token)).json.metadata?.name).toBe('secret-name')
  })

  it('of one key under two ids is refused', async () => {
    const { token } = await makeToken()
    const keys = generateKeyPairSync('ed25519')
    const first = playEdgeHost(platform, { keys })
    expect((await first.register(token)).status).toBe(200)
    const refused = await playEdgeHost(platform, { keys }).register(token)
    expect([refused.status, refused.json.code]).toEqual([409, 'HostAlreadyRegistered'])
    expect(refused.text).toContain(`host delete ${first.uid}`)
  })

  it('that a record of another project blocks names the command, and the trail names the record', async () => {
    const thief = playEdgeHost(platform)
    await thief.register((await makeToken({ defaultProjectUid: projectUid })).token, 'squatter')
    const host = playEdgeHost(platform, { hostUid: thief.hostUid })
    const { token } = await makeToken()
    const refused = await host.register(token)
    expect(refused.text).toContain(`edgeplatformctl host delete ${thief.uid}`)
    expect(refused.text).not.toContain('squatter')
    const found = await ask('GET', `/v1/audits?resourceUid=${thief.uid}`)
    expect(found.text).toContain('HostAlreadyRegistered')
    expect(found.text).toContain('squatter')
    await ask('DELETE', `/v1/edgehosts/${thief.uid}`, undefined, { ...admin, projectuid: projectUid })
    expect((await host.register(token)).status).toBe(200)
  })

  it('may be done again with the same key, and not with another one until the record is deleted', async () => {
    const { token } = await makeToken()
    const host = playEdgeHost(platform)
    const first = (await host.register(token)).json.metadata?.uid
    expect((await host.register(token)).json.metadata?.uid).toBe(first)
    const other = playEdgeHost(platform, { hostUid: host.hostUid })
    const refused = await other.register(token)
    expect([refused.status, refused.json.code]).toEqual([409, 'HostAlreadyRegistered'])
    await ask('DELETE', `/v1/edgehosts/${first}`)
    expect((await other.register(token)).status).toBe(200)
  })

  it('can be tried: the same refusals, the host as it would be, and nothing is written, counted or recorded', async () => {
    const one = await makeToken({ defaultProjectUid: projectUid, maximumHosts: 1 })
    const audits = async () => (await ask('GET', '/v1/audits?limit=1')).json.listmeta.count
    const before = await audits()
    const host = playEdgeHost(platform)
    for (const url of ['?dryRun=true', '?dryRun=true']) {
      const tried = await host.ask(url, one.token, 'mill-9')
      expect(tried).toMatchObject({
        status: 200,
        json: { metadata: { uid: '', name: 'mill-9' }, aclmeta: { projectUid } },
      })
      expect(tried.text).not.toContain(one.token)
    }
    expect((await host.ask('?dryRun=true', 'unknown')).json.code).toBe('RegistrationTokenRefused')
    expect(await audits()).toBe(before)
    expect((await ask('GET', `/v1/edgehosts/tokens/${one.uid}`)).json.status.hosts).toBe(0)

    await host.register(one.token, 'mill-9')
    expect(await audits()).toBe(before + 1)
    const known = await host.ask('?dryRun=true', 'unknown', 'other')
    expect(known.json.metadata).toEqual({ uid: host.uid })
    expect((await playEdgeHost(platform).ask('?dryRun=true', one.token)).json.code).toBe(
      'RegistrationTokenRefused',
    )
    const { token } = await makeToken()
    const other = playEdgeHost(platform, { hostUid: host.hostUid })
    const refused = await other.ask('?dryRun=true', token)
    expect([refused.status, refused.json.code]).toEqual([409, 'HostAlreadyRegistered'])
  })

  it.each(['?dryRun=1', '?dryRun=', '?dryRun=TRUE', '?dryRun=true&dryRun=true', '?dryrun=true'])(
    'registers nothing with %s, which may have been meant as a try',
    async (query) => {
      const { uid, token } = await makeToken()
      expect((await playEdgeHost(platform).ask(query, token)).status).toBe(400)
      expect((await ask('GET', `/v1/edgehosts/tokens/${uid}`)).json.status.hosts).toBe(0)
    },
  )

  it('shows no token and no secret, and puts the host where its token says', async () => {
    const { token } = await makeToken({ defaultProjectUid: projectUid })
    const host = playEdgeHost(platform)
    const reply = await host.register(token, 'mill-7')
    expect(reply.text).not.toContain(token)
    expect(reply.json).toMatchObject({ aclmeta: { projectUid }, status: { state: 'ready' } })
    const inProject = { ...admin, projectuid: projectUid }
    const list = await ask('GET', '/v1/edgehosts?filters=metadata.name=mill-7', undefined, inProject)
    expect(list.json.items.map(({ metadata }) => metadata.uid)).toEqual([host.uid])
    expect((await ask('GET', '/v1/edgehosts?filters=metadata.name=mill-7')).json.listmeta.count).toBe(0)
    expect((await ask('GET', `/v1/edgehosts/${host.uid}`)).status).toBe(404)
    expect((await ask('GET', `/v1/edgehosts/${host.uid}`, undefined, inProject)).status).toBe(200)
    const inUse = await ask('DELETE', `/v1/projects/${projectUid}`)
    expect([inUse.json.code, inUse.json.message]).toEqual([
      'ProjectInUse',
      expect.stringMatching(/north still has \d+ edge hosts?, the registration token /),
    ])
  })
})

describe('the login of a host', () => {
  it('is a nonce and its signature; each gets the next generation', async () => {
    const host = await registered()
    const challenge = await host.challenge()
    expect([challenge.status, challenge.json.code]).toEqual([401, 'LoginChallenge'])
    expect([(await host.logIn()).json.generation, (await host.logIn()).json.generation]).toEqual([1, 2])
  })

  it('cannot be used again, nor with the nonce of another host, nor after a minute', async () => {
    const [host, other] = [await registered(), await registered()]
    const nonce = (await host.challenge()).json.details!.nonce
    const answered = await host.answer(nonce, 0)
    expect(answered.status).toBe(200)
    // What stood on the wire gets no other token, neither before the host has used its own nor after that.
    expect((await host.answer(nonce, 0)).json.code).toBe('LoginChallenge')
    platform.rooms.hosts.authenticate(answered.json.Authorization!)
    expect((await host.answer(nonce, 0)).json.code).toBe('LoginChallenge')
    // Nor does it make the host look like two.
    host.generation = answered.json.generation!
    expect((await host.logIn()).status).toBe(200)
    expect((await other.answer(nonce)).json.code).toBe('LoginChallenge')
    const late = (await other.challenge()).json.details!.nonce
    platform.clock.turn(minuteMs)
    expect((await other.answer(late)).json.code).toBe('LoginChallenge')
  })

  it('gives a token that is over where the clock is set back by more than NTP does', async () => {
    const host = await registered()
    platform.clock.turn(365 * dayMs)
    const token = (await host.logIn()).json.Authorization!
    platform.clock.turn(-minuteMs)
    expect(platform.rooms.hosts.authenticate(token)).toBeDefined()
    platform.clock.turn(minuteMs - 365 * dayMs)
    expect(platform.rooms.hosts.authenticate(token)).toBeUndefined()
    const again = (await host.logIn()).json.Authorization!
    expect(platform.rooms.hosts.authenticate(again)).toBeDefined()
  })

  it('of an unknown host and of a wrong key are refused alike', async () => {
    const unknown = playEdgeHost(platform, { uid: randomUUID() })
    const host = await registered()
    await host.logIn()
    for (const challenge of [await unknown.challenge(), await host.challenge()]) {
      expect(challenge.json.code).toBe('LoginChallenge')
      expect(Object.keys(challenge.json.details!)).toEqual(['nonce'])
    }
    const thief = playEdgeHost(platform, { hostUid: host.hostUid, uid: host.uid })
    const replies = [await unknown.loseLogin(), await thief.loseLogin()]
    for (const { json } of replies) expect(json.code).toBe('LoginRefused')
  })

  it('continues when its reply is lost, at any time', async () => {
    const host = await registered()
    for (let round = 0; round < 3; round += 1) {
      await host.loseLogin()
      await host.loseLogin()
      expect((await host.logIn()).status).toBe(200)
      expect(platform.rooms.hosts.authenticate(host.token)?.uid).toBe(host.uid)
    }
  })

  it('tells a host and its copy apart, and refuses both until an administrator has chosen', async () => {
    const host = await registered()
    await host.logIn()
    platform.rooms.hosts.authenticate(host.token)
    const copy = host.copy()
    await host.logIn()
    platform.rooms.hosts.authenticate(host.token)
    const other = (await ask('GET', `/v1/edgehosts/${host.uid}`)).json
    expect(other.status.isDuplicate).toBeUndefined()
    expect((await copy.logIn()).json.code).toBe('HostExistsTwice')
    expect((await host.logIn()).json.code).toBe('HostExistsTwice')
    expect(platform.rooms.hosts.authenticate(host.token)).toBeUndefined()
    expect((await ask('GET', `/v1/edgehosts/${host.uid}`)).json.status.isDuplicate).toBe(true)
    await ask('PUT', `/v1/edgehosts/${host.uid}/duplicate`, { action: 'acceptNext' })
    expect((await copy.logIn()).status).toBe(200)
    expect(platform.rooms.hosts.authenticate(copy.token)?.uid).toBe(host.uid)
    expect((await host.logIn()).json.code).toBe('HostExistsTwice')
  })

  it('takes a newer generation than it knows, as after a restored backup', async () => {
    const host = await registered()
    host.generation = 40
    expect((await host.logIn()).json.generation).toBe(41)
  })

  it('of a removed host says so, and its token ends', async () => {
    const host = await registered()
    await host.logIn()
    expect((await ask('DELETE', `/v1/edgehosts/${host.uid}`)).status).toBe(204)
    expect(platform.rooms.hosts.authenticate(host.token)).toBeUndefined()
    expect((await host.logIn()).json.code).toBe('HostRemoved')
  })

  it('is recorded at the first time and when it is refused, and no token stands anywhere', async () => {
    const host = await registered()
    const { sql } = platform.rooms.state.database
    const count = () =>
      (
        sql
          .prepare("SELECT count(*) AS found FROM audit WHERE action = 'activity' AND resource_uid = ?")
          .get(host.uid) as { found: number }
      ).found
    await host.logIn()
    platform.rooms.audit.flush()
    expect(count()).toBe(1)
    await host.logIn()
    await host.challenge()
    platform.rooms.audit.flush()
    expect(count()).toBe(1)
    const all = JSON.stringify([platform.lines, sql.prepare('SELECT * FROM audit').all()])
    expect(all).not.toContain(host.token)
  })
})

it('roles in a project count for its hosts alone', async () => {
  const uid = await platform.addUser('north@plant.example', password)
  const users = [{ userId: uid, roles: ['viewer'] }]
  await ask('PUT', `/v1/projects/${projectUid}`, { metadata: { name: 'north' }, spec: { users } })
  const own = await platform.signIn('north@plant.example', password)
  const inProject = { ...own, projectuid: projectUid }
  expect((await ask('GET', '/v1/edgehosts', undefined, inProject)).status).toBe(200)
  expect((await ask('GET', '/v1/edgehosts', undefined, own)).status).toBe(403)
  expect((await ask('GET', '/v1/users', undefined, inProject)).status).toBe(403)
  const [host] = (await ask('GET', '/v1/edgehosts', undefined, inProject)).json.items
  expect((await ask('DELETE', `/v1/edgehosts/${host!.metadata.uid}`, undefined, inProject)).status).toBe(403)
})
