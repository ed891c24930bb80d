import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'
import { dayMs, hourMs, minuteMs } from '../support/turning-clock.ts'

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
interface Reply {
  readonly uid: string
  readonly code: string
  readonly activationLink: string
  readonly Authorization: string
  readonly status: { readonly activationLink?: string; readonly isPasswordResetting: boolean }
  readonly items: readonly { readonly spec: { readonly emailId: string } }[]
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: { readonly authorization: string }

beforeAll(async () => {
  platform = await createTestPlatform({ flags: ['--platform.hostName=platform.plant.example'] })
  await platform.addUser('root@plant.example', password, ['admin'])
  admin = await platform.signIn('root@plant.example', password)
})
afterAll(() => platform.close())

async function ask(method: Method, url: string, payload?: object, headers: Record<string, string> = admin) {
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  return {
    status: reply.statusCode,
    headers: reply.headers,
    json: (reply.body === '' || reply.body === 'null' ? {} : reply.json()) as Reply,
    text: reply.body,
  }
}

const linkOf = async (uid: string) =>
  new URL((await ask('GET', `/v1/users/${uid}`)).json.status.activationLink ?? '').pathname

describe('a new user', () => {
  it('is made by an administrator, and sets a password by a link that is shown once and used once', async () => {
    const made = await ask('POST', '/v1/users', {
      spec: { emailId: 'Anna@plant.example', firstName: 'Anna', roles: ['viewer'] },
    })
    expect(made.status).toBe(201)
    expect(made.headers.audituid).toMatch(/^[0-9a-f-]{36}$/)
    const path = `/v1/users/${made.json.uid}`
    // Its answer has no room for the link, so it does not use it up.
    expect((await ask('HEAD', path)).status).toBe(200)
    const shown = await ask('GET', path)
    expect(shown.json.status.activationLink).toMatch(
      /^https:\/\/platform\.plant\.example(:0)?\/v1\/auth\/password\/[\w-]{43}\/activate$/,
    )
    expect((await ask('GET', path)).json.status.activationLink).toBeUndefined()
    const link = new URL(shown.json.status.activationLink ?? '').pathname
    const short = await ask('PATCH', link, { password: 'short' }, {})
    expect([short.status, short.json.code, short.text]).toEqual([
      400,
      'BadRequest',
      expect.stringContaining('password'),
    ])
    for (const [given, reason] of [
      ['xxxxxxxxxxxx', 'password is one character over and over'],
      ['ANNA@plant.example', 'password is the name or the e-mail address of the user'],
    ]) {
      const refused = await ask('PATCH', link, { password: given }, {})
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(reason ?? '')])
    }
    expect((await ask('PATCH', link, { password }, {})).status).toBe(204)
    const change = { emailId: 'anna@plant.example', currentPassword: password }
    const named = await ask(
      'PATCH',
      '/v1/users/password/change',
      { ...change, newPassword: 'Anna@Plant.Example' },
      {},
    )
    expect([named.status, named.text]).toEqual([400, expect.stringContaining('newPassword is the name')])
    expect((await ask('PATCH', link, { password }, {})).json.code).toBe('LinkRefused')
    const own = await platform.signIn('anna@PLANT.example', password)
    expect((await ask('GET', '/v1/users/info', undefined, own)).json).toMatchObject({
      userUid: made.json.uid,
    })
    expect((await ask('GET', '/v1/users', undefined, own)).json.code).toBe('Forbidden')
  })

  it('cannot use a link that is a day old, or that a newer one has replaced', async () => {
    const { uid } = (await ask('POST', '/v1/users', { spec: { emailId: 'late@plant.example' } })).json
    const first = await linkOf(uid)
    const renewed = (await ask('POST', `/v1/users/${uid}/activation`)).json.activationLink
    expect((await ask('PATCH', first, { password }, {})).json.code).toBe('LinkRefused')
    platform.clock.turn(24 * hourMs + 1)
    admin = await platform.signIn('root@plant.example', password)
    expect((await ask('PATCH', new URL(renewed).pathname, { password }, {})).json.code).toBe('LinkRefused')
    const again = (await ask('POST', `/v1/users/${uid}/activation`)).json.activationLink
    expect((await ask('PATCH', new URL(again).pathname, { password }, {})).status).toBe(204)
  })
})

describe('the roles of a user', () => {
  it('are replaced, and count at once for the tokens that are there', async () => {
    const uid = await platform.addUser('ben@plant.example', password, ['admin'])
    const ben = await platform.signIn('ben@plant.example', password)
    expect((await ask('GET', '/v1/users', undefined, ben)).status).toBe(200)
    expect((await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['operator'] })).status).toBe(204)
    expect((await ask('GET', '/v1/users', undefined, ben)).status).toBe(403)
    expect((await ask('PUT', `/v1/users/${uid}/roles`, { roles: [] })).status).toBe(204)
    // Without any role, a user still learns who it is.
    expect((await ask('GET', '/v1/users', undefined, ben)).status).toBe(403)
    expect((await ask('GET', '/v1/users/info', undefined, ben)).status).toBe(200)
    expect((await ask('PUT', `/v1/users/${uid}/roles`, { roles: ['king'] })).text).toContain('roles[0]')
  })

  it('of the last administrator stay, and so does the user', async () => {
    const [root] = (await ask('GET', '/v1/users?filters=spec.emailId=root@plant.example')).json
      .items as unknown as { metadata: { uid: string } }[]
    const path = `/v1/users/${root!.metadata.uid}`
    expect((await ask('DELETE', path)).json.code).toBe('LastAdministrator')
    expect((await ask('PUT', `${path}/roles`, { roles: ['viewer'] })).json.code).toBe('LastAdministrator')
    expect((await ask('PUT', `${path}/roles`, { roles: ['admin', 'viewer'] })).status).toBe(204)
  })
})

it('the list of users has filters, order, fields and pages', async () => {
  const list = await ask('GET', '/v1/users?orderBy=spec.emailId=1&fields=spec.emailId&limit=2')
  expect(list.json.items).toEqual([
    { spec: { emailId: 'Anna@plant.example' } },
    { spec: { emailId: 'ben@plant.example' } },
  ])
  expect(list.json).toMatchObject({ listmeta: { count: 4, limit: 2, continue: expect.stringMatching(/./) } })
  expect((await ask('GET', '/v1/users?filters=spec.roles=admin')).json.items).toHaveLength(1)
})

describe('a token', () => {
  it('lasts 15 minutes, fits into a path, and is refreshed for another one', async () => {
    await platform.addUser('tom@plant.example', password, ['viewer'])
    const first = await platform.signIn('tom@plant.example', password)
    expect(first.authorization.length).toBeLessThanOrEqual(250)
    platform.clock.turn(14 * minuteMs)
    const refreshed = await ask('GET', `/v1/auth/refresh/${first.authorization}`, undefined, {})
    expect(refreshed.status).toBe(200)
    expect((await ask('GET', '/v1/users/info', undefined, first)).status).toBe(401)
    const second = { authorization: refreshed.json.Authorization }
    platform.clock.turn(2 * minuteMs)
    expect((await ask('GET', '/v1/users/info', undefined, second)).status).toBe(200)
    platform.clock.turn(14 * minuteMs)
    expect((await ask('GET', '/v1/users/info', undefined, second)).status).toBe(401)
    expect((await ask('GET', `/v1/auth/refresh/${second.authorization}`, undefined, {})).status).toBe(401)
    admin = await platform.signIn('root@plant.example', password)
  })

  it('ends when it is revoked, when the password changes, and with its user', async () => {
    const uid = await platform.addUser('eve@plant.example', password, ['viewer'])
    const tokens = [1, 2, 3].map(() => platform.signIn('eve@plant.example', password))
    const [one, two, three] = await Promise.all(tokens)
    const tells = async (token = one) => (await ask('GET', '/v1/users/info', undefined, token)).status
    await ask('POST', '/v1/users/auth/tokens/revoke', { tokens: [one!.authorization, 'nonsense'] }, two)
    expect([await tells(one), await tells(two)]).toEqual([401, 200])
    const changed = await ask(
      'PATCH',
      '/v1/users/password/change',
      { emailId: 'eve@plant.example', currentPassword: password, newPassword: 'another password' },
      {},
    )
    expect(changed.status).toBe(204)
    expect([await tells(two), await tells(three)]).toEqual([401, 401])
    const last = await platform.signIn('eve@plant.example', 'another password')
    expect((await ask('DELETE', `/v1/users/${uid}`)).status).toBe(204)
    expect(await tells(last)).toBe(401)
  })

  it('and a link are over where the clock is set back, so that they do not last for a year', async () => {
    const uid = await platform.addUser('time@plant.example', password, ['viewer'])
    const now = platform.clock.now.bind(platform.clock)
    const clock = vi.spyOn(platform.clock, 'now').mockImplementation(() => now() + 365 * dayMs)
    const token = await platform.signIn('time@plant.example', password)
    const link = new URL(platform.rooms.people.users.renewLink(uid)).pathname
    const tells = async () => (await ask('GET', '/v1/users/info', undefined, token)).status
    expect(await tells()).toBe(200)
    // NTP corrects it a little.
    clock.mockImplementation(() => now() + 365 * dayMs - minuteMs)
    expect(await tells()).toBe(200)
    clock.mockImplementation(now)
    expect(await tells()).toBe(401)
    expect((await ask('GET', `/v1/auth/refresh/${token.authorization}`, undefined, {})).status).toBe(401)
    expect((await ask('PATCH', link, { password }, {})).json.code).toBe('LinkRefused')
  })

  it('that was revoked stays so after the clock was ahead for a moment', async () => {
    await platform.addUser('gone@plant.example', password, ['viewer'])
    const token = await platform.signIn('gone@plant.example', password)
    await ask('POST', '/v1/users/auth/tokens/revoke', { tokens: [token.authorization] }, token)
    const now = platform.clock.now.bind(platform.clock)
    const sweep = async (aheadMs: number) => {
      const clock = vi.spyOn(platform.clock, 'now').mockImplementation(() => now() + aheadMs)
      await platform.rooms.people.jobs.find(({ name }) => name === 'revoked tokens')?.run()
      clock.mockImplementation(now)
      return platform.rooms.state.database.sql.prepare('SELECT id FROM revoked_token').all().length
    }
    // After a restart, the platform knows what is on the disk.
    expect(await sweep(dayMs)).toBeGreaterThan(0)
    expect(await sweep(365 * dayMs)).toBe(0)
    expect((await ask('GET', '/v1/users/info', undefined, token)).status).toBe(401)
  })

  it('and a link stand in no log line, no audit record and no error', async () => {
    const { uid } = (await ask('POST', '/v1/users', { spec: { emailId: 'log@plant.example' } })).json
    const link = await linkOf(uid)
    const secret = link.split('/')[4] ?? ''
    await ask('PATCH', link, { password: 'x' }, {})
    await ask('PATCH', link, { password }, {})
    await ask('PATCH', link, { password }, {})
    await ask('POST', link, { password }, {})
    const { authorization } = await platform.signIn('log@plant.example', password)
    const refused = await ask('GET', `/v1/auth/refresh/${authorization}x`, undefined, {})
    await ask('DELETE', `/v1/auth/refresh/${authorization}`, undefined, {})
    await ask('GET', `/v1/auth/refresh/${authorization}/more`, undefined, {})
    expect(refused.text).not.toContain(authorization)
    platform.rooms.audit.flush()
    const records = platform.rooms.state.database.sql.prepare('SELECT * FROM audit').all()
    const all = JSON.stringify([platform.lines, records])
    expect(all).toContain('log@plant.example')
    for (const each of [secret, authorization, password]) expect(all).not.toContain(each)
  })
})

describe('a refused sign-in', () => {
  const signIn = (emailId: string, given: string) =>
    ask('POST', '/v1/auth/authenticate', { emailId, password: given }, {})

  it('is the same for a wrong password, an unknown user and a user without a password', async () => {
    await ask('POST', '/v1/users', { spec: { emailId: 'new@plant.example' } })
    const replies = [
      await signIn('root@plant.example', 'wrong'),
      await signIn('nobody@plant.example', 'wrong'),
      await signIn('new@plant.example', ''),
    ]
    for (const { status, json } of replies) {
      expect(status).toBe(401)
      expect({ ...json, ref: '' }).toEqual({ ...replies[0]!.json, ref: '' })
    }
  })

  it('is counted: guesses of one address are locked out', async () => {
    const codes: string[] = []
    for (let count = 0; count < 6; count += 1) {
      platform.clock.turn(30_000)
      codes.push((await signIn('nobody@plant.example', 'wrong')).json.code)
    }
    expect(codes.at(-1)).toBe('TooManyAttempts')
  })
})

it('a request for a new link is always answered alike, and shows at the user', async () => {
  const reset = (emailId: string) => ask('POST', '/v1/auth/user/password/reset', { emailId }, {})
  const replies = [await reset('anna@plant.example'), await reset('nobody@plant.example')]
  expect(replies.map(({ status, text }) => [status, text])).toEqual([
    [204, ''],
    [204, ''],
  ])
  admin = await platform.signIn('root@plant.example', password)
  const asking = await ask('GET', '/v1/users?filters=status.isPasswordResetting=true')
  expect(asking.json.items.map(({ spec }) => spec.emailId)).toEqual(['Anna@plant.example'])
})

it('a request for a new link is answered alike for everybody while the disk is full', async () => {
  await platform.addUser('asks@plant.example', password)
  const { sql } = platform.rooms.state.database
  const request = async (emailId: string) =>
    (await ask('POST', '/v1/auth/user/password/reset', { emailId }, {})).status
  sql.exec('PRAGMA query_only = 1')
  try {
    expect([await request('asks@plant.example'), await request('nobody@plant.example')]).toEqual([204, 204])
  } finally {
    sql.exec('PRAGMA query_only = 0')
  }
})
