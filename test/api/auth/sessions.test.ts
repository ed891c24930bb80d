import { describe, expect, it } from 'vitest'
import {
  currentPath,
  logoutPath,
  renewalPath,
  resetPath,
  sessionsPath,
  type ErrorReply,
  type LoginReply,
  type TestEdge,
  useEdges,
  useOneEdge,
} from '../../support/test-edge.ts'

let edge: TestEdge
const use = (made: TestEdge) => (edge = made)

interface SessionList {
  items: { uid: string; userName: string; isCurrent: boolean; address: string }[]
  listmeta: Record<string, unknown>
}
type Tokens = LoginReply['Token']

const bearing = (token: string) => ({ headers: { authorization: token } })
const status = async (token: string) => (await edge.get(currentPath, token)).statusCode

describe('a renewal', () => {
  useOneEdge(use)

  it('a renewal gives a new pair, also without a valid access token', async () => {
    const { refresh } = await edge.login('bob')
    const reply = await edge.post(renewalPath, { refreshToken: refresh })
    expect(reply.statusCode).toBe(200)
    const tokens = reply.json<Tokens>()
    expect(Object.keys(tokens)).toEqual(['Authorization', 'RefreshToken'])
    expect(await status(tokens.Authorization)).toBe(200)
    expect(reply.headers).not.toHaveProperty('set-cookie')
  })

  it('a lost renewal is repeated with the same pair; the old token ends the session when it is sent late', async () => {
    const { refresh } = await edge.login('bob')
    const first = await edge.post(renewalPath, { refreshToken: refresh })
    const again = await edge.post(renewalPath, { refreshToken: refresh })
    expect(again.json()).toEqual(first.json())
    edge.clock.turn(31_000)
    const late = await edge.post(renewalPath, { refreshToken: refresh })
    expect([late.statusCode, late.json<ErrorReply>().code]).toEqual([401, 'Unauthenticated'])
    expect(await status(first.json<Tokens>().Authorization)).toBe(401)
  })

  it('a renewal without a body uses the cookie, and sets both cookies again', async () => {
    const { refresh } = await edge.login('bob')
    const reply = await edge.app.inject({
      method: 'POST',
      url: renewalPath,
      headers: { cookie: `RefreshToken=${refresh}`, 'sec-fetch-site': 'same-origin' },
    })
    expect(reply.statusCode).toBe(200)
    expect(reply.cookies.map(({ name }) => name)).toEqual(['Authorization', 'RefreshToken'])
  })

  it.each<[string, unknown]>([
    ['nothing', {}],
    ['an empty token', { refreshToken: '' }],
    ['a number', { refreshToken: 5 }],
    ['a list', { refreshToken: ['x'] }],
  ])('a renewal with %s is a 400', async (_what, body) => {
    const reply = await edge.post(renewalPath, body)
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([400, 'BadRequest'])
  })

  it.each(['x', 'x.y', 'A'.repeat(5_000), 'YQ.YQ'])(
    'a renewal with the token %j is a 401',
    async (refreshToken) => {
      expect((await edge.post(renewalPath, { refreshToken })).statusCode).toBe(401)
    },
  )

  it('an access token cannot renew, and a refresh token gives no access', async () => {
    const { access, refresh } = await edge.login('bob')
    expect((await edge.post(renewalPath, { refreshToken: access })).statusCode).toBe(401)
    expect(await status(refresh)).toBe(401)
  })

  it('a renewal for a locked, deleted or expired account ends the session', async () => {
    for (const change of ['locked', 'account-expired', 'deleted'] as const) {
      const account = { name: `user-${change}`, uid: 2000, password: 'some pass' }
      edge.host.accounts.set(account.name, account)
      await edge.host.write()
      const { access, refresh } = await edge.login(account.name)
      if (change === 'deleted') edge.host.accounts.delete(account.name)
      else edge.host.accounts.set(account.name, { ...account, state: change })
      await edge.host.write()
      expect((await edge.post(renewalPath, { refreshToken: refresh })).statusCode, change).toBe(401)
      expect(await status(access), change).toBe(401)
    }
  })
})

describe('logout', () => {
  useOneEdge(use)

  it('a logout ends the session at once: both tokens are refused, and the cookies are removed', async () => {
    const { access, refresh } = await edge.login('bob')
    const reply = await edge.post(logoutPath, undefined, bearing(access))
    expect([reply.statusCode, reply.json()]).toEqual([200, {}])
    // Those of earlier versions had the path /.
    expect(reply.cookies.map(({ name, value, maxAge, path }) => [name, value, maxAge, path])).toEqual([
      ['Authorization', '', 0, '/v1/'],
      ['RefreshToken', '', 0, '/v1/'],
      ['Authorization', '', 0, '/'],
      ['RefreshToken', '', 0, '/'],
    ])
    expect(await status(access)).toBe(401)
    expect((await edge.post(renewalPath, { refreshToken: refresh })).statusCode).toBe(401)
  })

  it('a logout ends only its own session', async () => {
    const [one, two] = [await edge.login('bob'), await edge.login('bob')]
    await edge.post(logoutPath, undefined, bearing(one.access))
    expect(await status(two.access)).toBe(200)
  })

  it('a logout also ends access tokens of earlier renewals', async () => {
    const { access, refresh } = await edge.login('bob')
    const { Authorization } = (await edge.post(renewalPath, { refreshToken: refresh })).json<Tokens>()
    await edge.post(logoutPath, undefined, bearing(Authorization))
    expect(await status(access)).toBe(401)
  })
})

describe('the access token of a request', () => {
  useOneEdge(use)

  it.each([
    ['bare', (token: string) => token],
    ['behind Bearer', (token: string) => `Bearer ${token}`],
    ['behind bearer', (token: string) => `bearer ${token}`],
  ])('a token is accepted %s', async (_how, write) => {
    expect(await status(write((await edge.login('bob')).access))).toBe(200)
  })

  it('a bad token in the header is refused even with a good cookie', async () => {
    const { access } = await edge.login('bob')
    for (const authorization of ['', 'garbage', 'Bearer ', 'Basic Ym9iOnBhc3M=']) {
      const reply = await edge.app.inject({
        url: currentPath,
        headers: { authorization, cookie: `Authorization=${access}` },
      })
      expect(reply.statusCode, authorization).toBe(401)
    }
  })
})

describe('the list of sessions', () => {
  useEdges(use)

  const list = async (token: string) => (await edge.get(sessionsPath, token)).json<SessionList>()

  it('a viewer sees only its own sessions, the current one marked', async () => {
    await edge.login('alice')
    await edge.login('bob')
    const { access } = await edge.login('bob', { remoteAddress: '192.0.2.5' })
    const { items, listmeta } = await list(access)
    expect(items.map(({ userName }) => userName)).toEqual(['bob', 'bob'])
    expect(items.filter(({ isCurrent }) => isCurrent).map(({ address }) => address)).toEqual(['192.0.2.5'])
    expect(listmeta).toMatchObject({ count: 2, continue: '' })
  })

  it('an administrator sees the sessions of all users', async () => {
    await edge.login('bob')
    const { access } = await edge.login('alice')
    expect((await list(access)).items.map(({ userName }) => userName).sort()).toEqual(['alice', 'bob'])
  })

  it('the list of sessions contains nothing that lets a reader take over a session', async () => {
    const { access } = await edge.login('alice')
    const [item] = (await list(access)).items
    expect(Object.keys(item ?? {}).sort()).toEqual([
      'address',
      'creationTimestamp',
      'expirationTimestamp',
      'isCurrent',
      'lastRenewalTimestamp',
      'role',
      'uid',
      'userName',
    ])
  })
})

describe('ending a session by its uid', () => {
  useOneEdge(use)

  const remove = async (token: string, uid: string) =>
    (await edge.app.inject({ method: 'DELETE', url: `${sessionsPath}/${uid}`, ...bearing(token) })).statusCode
  const uidOf = (token: string) => edge.sessions.authenticate(token)?.sessionUid ?? ''

  it('a user can end its own sessions, the current one included', async () => {
    const [one, two] = [await edge.login('bob'), await edge.login('bob')]
    expect(await remove(one.access, uidOf(two.access))).toBe(204)
    expect(await status(two.access)).toBe(401)
    expect(await remove(one.access, uidOf(one.access))).toBe(204)
    expect(await status(one.access)).toBe(401)
  })

  it('only an administrator can end the session of another user', async () => {
    const [alice, bob] = [await edge.login('alice'), await edge.login('bob')]
    expect(await remove(bob.access, uidOf(alice.access))).toBe(403)
    expect(await status(alice.access)).toBe(200)
    expect(await remove(alice.access, uidOf(bob.access))).toBe(204)
    expect(await status(bob.access)).toBe(401)
  })

  it.each([
    ['0b9e1d3c-1f5a-4a4e-9d53-6f1c2b3a4d5e', 'not there', 404],
    ['x', 'no uid', 400],
    ['%00', 'no uid', 400],
    ['..%2f', 'no uid', 400],
  ])('the uid %s, which is %s, is refused', async (uid, _what, status) => {
    expect(await remove((await edge.login('bob')).access, uid)).toBe(status)
  })
})

const change = { oldPassword: 'bob pass', newPassword: 'another pass' }

describe('a password change', () => {
  useEdges(use)

  it('a password change with a token ends all sessions of the user, and no others', async () => {
    const [one, two, alice] = [await edge.login('bob'), await edge.login('bob'), await edge.login('alice')]
    const reply = await edge.post(resetPath, change, bearing(one.access))
    expect([reply.statusCode, reply.body]).toEqual([204, ''])
    expect(await Promise.all([one, two, alice].map(({ access }) => status(access)))).toEqual([401, 401, 200])
    expect((await edge.post(renewalPath, { refreshToken: two.refresh })).statusCode).toBe(401)
    await edge.host.write()
    await edge.login('bob')
  })

  it('an account with an expired password changes it with user name and old password, without a token', async () => {
    const body = { username: 'fresh', oldPassword: 'fresh pass', newPassword: 'another pass' }
    expect((await edge.post(resetPath, body)).statusCode).toBe(204)
    expect((await edge.tryLogin('fresh', 'another pass')).statusCode).toBe(200)
  })

  it('a password change gives both passwords to PAM on standard input only', async () => {
    await edge.post(resetPath, { username: 'bob', ...change }, { remoteAddress: '192.0.2.8' })
    expect(edge.pamCalls().at(-1)).toEqual({
      program: '/opt/fake/pamtester',
      args: ['-I', 'rhost=192.0.2.8', 'other', 'bob', 'chauthtok(PAM_CHANGE_EXPIRED_AUTHTOK)'],
      input: 'bob pass\nanother pass\nanother pass\n',
    })
  })

  it("a new password that the host's policy refuses is refused with the text of PAM, and no session ends", async () => {
    const { access } = await edge.login('bob')
    const reply = await edge.post(resetPath, { ...change, newPassword: 'short' }, bearing(access))
    expect(reply.statusCode).toBe(400)
    expect(reply.json()).toMatchObject({
      code: 'PasswordRefused',
      message: 'You must choose a longer password.',
      details: { field: 'newPassword' },
    })
    expect(await status(access)).toBe(200)
  })
})

describe('a password change that is refused', () => {
  useOneEdge(use)

  it.each(['new\npass', 'new\0pass', 'new pass\r', 'x'.repeat(512)])(
    'the new password %j, which PAM cannot be given whole, is a 400 before PAM is called',
    async (newPassword) => {
      const reply = await edge.post(resetPath, { username: 'bob', oldPassword: 'bob pass', newPassword })
      expect(reply.json()).toMatchObject({ code: 'BadRequest', details: { field: 'newPassword' } })
      expect(edge.host.calls).toEqual([])
    },
  )

  it('a password change without user name and token is a 401, whatever the passwords', async () => {
    for (const extra of [{}, bearing('garbage')]) {
      const reply = await edge.post(resetPath, change, extra)
      expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([401, 'Unauthenticated'])
    }
    expect(edge.host.calls).toEqual([])
  })

  it('a password change for another user is treated as a login, also from an administrator', async () => {
    const { access } = await edge.login('alice')
    const body = { username: 'bob', oldPassword: 'wrong', newPassword: 'another pass' }
    const reply = await edge.post(resetPath, body, bearing(access))
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([401, 'InvalidCredentials'])
  })

  it.each([
    ['username', 5],
    ['oldPassword', 5],
    ['newPassword', ['x']],
    ['newPassword', ''],
    ['oldPassword', undefined],
  ])('a password change with %s being %j is a 400 that names the field', async (field, value) => {
    const reply = await edge.post(resetPath, { username: 'bob', ...change, [field]: value })
    expect(reply.json()).toMatchObject({ code: 'BadRequest', details: { field } })
  })
})

describe('an account that changes', () => {
  useEdges(use)

  it.each(['locked', 'account-expired', 'deleted', 'not an administrator', 'another password'])(
    'an account that is %s loses its sessions when the files are read',
    async (how) => {
      const { access } = await edge.login('alice')
      const alice = edge.host.accounts.get('alice')!
      if (how === 'deleted') edge.host.accounts.delete('alice')
      else if (how === 'not an administrator') alice.groups = []
      else if (how === 'another password') alice.password = 'another'
      else alice.state = how as 'locked'
      await edge.host.write()
      await edge.watch.check()
      expect(await status(access)).toBe(401)
    },
  )

  it('a login during a change of its account gets no session that outlives the change', async () => {
    for (const how of ['another password', 'locked', 'account-expired', 'deleted']) {
      const account = { name: `user ${how}`, uid: 3000, password: 'some pass' }
      edge.host.accounts.set(account.name, account)
      await edge.host.write()
      edge.host.pam = 'slow'
      const children = edge.pamCalls().length
      const login = edge.tryLogin(account.name, 'some pass')
      await expect.poll(() => edge.pamCalls().length).toBe(children + 1)
      if (how === 'deleted') edge.host.accounts.delete(account.name)
      else if (how === 'another password') account.password = 'another'
      else edge.host.accounts.set(account.name, { ...account, state: how as 'locked' })
      await edge.host.write()
      edge.host.release()
      await login
      await edge.watch.check()
      expect(edge.sessions.list(), how).toEqual([])
    }
  })

  it('a change of the account files is noticed by the watch of their folder', async () => {
    const { access } = await edge.login('bob')
    edge.watch.start()
    edge.host.accounts.get('bob')!.state = 'locked'
    await edge.host.write()
    // Nothing else looks here.
    await expect.poll(() => status(access), { timeout: 60_000, interval: 20 }).toBe(401)
    edge.watch.stop()
  })
})
