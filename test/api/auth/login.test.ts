import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createTestEdge,
  loginPath,
  type ErrorReply,
  type LoginReply,
  type TestEdge,
} from '../../support/test-edge.ts'

let edge: TestEdge
beforeEach(async () => {
  edge = await createTestEdge()
})
afterEach(() => edge.stop())

const good = { username: 'bob', password: 'bob pass' }

describe('a login', () => {
  it('gives both tokens and says whether it is the first of the account', async () => {
    const first = await edge.post(loginPath, good)
    expect(first.statusCode).toBe(200)
    const body = first.json<LoginReply>()
    expect(Object.keys(body)).toEqual(['Token', 'IsFirstLogin'])
    expect(Object.keys(body.Token)).toEqual(['Authorization', 'RefreshToken'])
    expect(body.IsFirstLogin).toBe(true)
    expect((await edge.login('bob')).reply.json<LoginReply>().IsFirstLogin).toBe(false)
    expect((await edge.login('alice')).reply.json<LoginReply>().IsFirstLogin).toBe(true)
  })

  it('is answered with the headers that keep it out of caches and its type as it is', async () => {
    const { headers } = await edge.post(loginPath, good)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-type': 'application/json; charset=utf-8',
    })
  })

  it('starts pamtester with fixed arguments, and gives the password on standard input only', async () => {
    await edge.post(loginPath, good, { remoteAddress: '::ffff:192.0.2.7' })
    expect(edge.pamCalls()).toEqual([
      {
        program: '/opt/fake/pamtester',
        args: [
          '-I',
          'rhost=192.0.2.7',
          'other',
          'bob',
          'authenticate(PAM_DISALLOW_NULL_AUTHTOK)',
          'acct_mgmt',
        ],
        input: 'bob pass\n',
      },
    ])
  })

  it('knows the client by its connection, not by what it says', async () => {
    await edge.post(loginPath, good, {
      remoteAddress: '192.0.2.7',
      headers: { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1', 'x-real-ip': '127.0.0.1' },
    })
    expect(edge.pamCalls()[0]?.args[1]).toBe('rhost=192.0.2.7')
  })

  it('makes members of the groups and uid 0 administrators, and everyone else a viewer', async () => {
    for (const [name, role] of [
      ['root', 'admin'],
      ['alice', 'admin'],
      ['bob', 'viewer'],
    ] as const) {
      const { access } = await edge.login(name)
      const me = await edge.get('/v1/users/current', access)
      expect(me.json()).toEqual({ userName: name, role, disablePasswordUpdate: false })
    }
  })

  it('gives each login a session and tokens of its own, whatever the client brought', async () => {
    const first = await edge.login('bob')
    const second = await edge.login('bob', {
      headers: { cookie: `Authorization=${first.access}; RefreshToken=${first.refresh}` },
    })
    expect(second.access).not.toBe(first.access)
    expect(second.refresh).not.toBe(first.refresh)
    expect(edge.sessions.list()).toHaveLength(2)
  })

  it('writes neither passwords nor tokens to the log', async () => {
    const { access, refresh } = await edge.login('bob')
    await edge.tryLogin('bob', 'a wrong secret')
    await edge.tryLogin('typed into the wrong field\n', 'x')
    const written = JSON.stringify(edge.lines)
    for (const secret of ['bob pass', access, refresh, 'a wrong secret', 'wrong field'])
      expect(written).not.toContain(secret)
  })
})

describe('cookies', () => {
  it('hold both tokens, out of the reach of scripts and other sites', async () => {
    const { reply, access, refresh } = await edge.login('bob')
    const attributes = { path: '/', httpOnly: true, secure: true, sameSite: 'Strict' }
    expect(reply.cookies).toEqual([
      { name: 'Authorization', value: access, ...attributes },
      { name: 'RefreshToken', value: refresh, ...attributes },
    ])
  })

  it('are left out with setCookie=false', async () => {
    const reply = await edge.post(`${loginPath}?setCookie=false`, good)
    expect(reply.statusCode).toBe(200)
    expect(reply.headers).not.toHaveProperty('set-cookie')
  })

  it('are not set by a refusal', async () => {
    expect((await edge.tryLogin('bob', 'wrong')).headers).not.toHaveProperty('set-cookie')
  })
})

describe('a body that is not a login', () => {
  it.each<[string, unknown, string]>([
    ['no user name', { password: 'x' }, 'username'],
    ['no password', { username: 'bob' }, 'password'],
    ['an empty user name', { username: '', password: 'x' }, 'username'],
    ['an empty password', { username: 'bob', password: '' }, 'password'],
    ['a number as user name', { username: 5, password: 'x' }, 'username'],
    ['a number as password', { username: 'bob', password: 5 }, 'password'],
    ['true as password', { username: 'bob', password: true }, 'password'],
    ['null as password', { username: 'bob', password: null }, 'password'],
    ['a list as user name', { username: ['bob'], password: 'x' }, 'username'],
    ['a list as password', { username: 'bob', password: ['bob pass'] }, 'password'],
    ['an object as user name', { username: { toString: 'bob' }, password: 'x' }, 'username'],
    ['a list', [good], 'body'],
  ])('with %s is a 400 that names the field', async (_what, payload, field) => {
    const reply = await edge.post(loginPath, payload)
    expect(reply.statusCode).toBe(400)
    const { code, message, details, ref } = reply.json<ErrorReply>()
    expect({ code, field: details?.field }).toEqual({ code: 'BadRequest', field })
    expect(message.startsWith(field)).toBe(true)
    expect(ref).toBe(reply.headers['x-request-id'])
    expect(edge.host.calls).toEqual([])
  })

  it.each(['null', '"bob"', '5', 'true', '[]', '{}'])('%s is a 400', async (payload) => {
    const reply = await edge.post(loginPath, payload, { headers: { 'content-type': 'application/json' } })
    expect(reply.json<ErrorReply>().code).toBe('BadRequest')
    expect(reply.statusCode).toBe(400)
  })

  it('and is not there at all is a 400', async () => {
    const reply = await edge.app.inject({ method: 'POST', url: loginPath })
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([400, 'BadRequest'])
  })

  it.each([
    ['broken JSON', '{"username":"bob"'],
    ['a prototype', '{"username":"bob","password":"bob pass","__proto__":{"x":1}}'],
    [
      'a constructor prototype',
      '{"username":"bob","password":"bob pass","constructor":{"prototype":{"x":1}}}',
    ],
    ['100 000 deep', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    ['bytes after its end', '{"username":"bob","password":"bob pass"}x'],
  ])('%s is a 400 without a word about the inside', async (_what, payload) => {
    const reply = await edge.post(loginPath, payload, { headers: { 'content-type': 'application/json' } })
    expect(reply.statusCode).toBe(400)
    expect(reply.json<ErrorReply>().code).toBe('BadRequest')
    expect(reply.body).not.toMatch(/node_modules|\.ts|at \w+ \(/)
    expect(edge.host.calls).toEqual([])
  })

  it('takes fields that nobody knows for nothing', async () => {
    const reply = await edge.post(loginPath, { ...good, role: 'admin', sub: 'root', extra: { a: [1] } })
    const { Token } = reply.json<LoginReply>()
    expect((await edge.get('/v1/users/current', Token.Authorization)).json()).toMatchObject({
      userName: 'bob',
      role: 'viewer',
    })
  })

  it.each(['setCookie=maybe', 'extendedSession=2', 'setCookie=true&setCookie=false'])(
    'with the query %s is a 400',
    async (query) => {
      const reply = await edge.post(`${loginPath}?${query}`, good)
      expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([400, 'BadRequest'])
    },
  )
})

describe('a content type', () => {
  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonx',
    'text/json',
    'application/json\ttext/plain',
    ' ',
    'garbage',
  ])('%j does not get past the schema', async (type) => {
    const payload = '{"username":["bob"],"password":5}'
    const reply = await edge.post(loginPath, payload, { headers: { 'content-type': type } })
    expect([400, 415]).toContain(reply.statusCode)
    expect(edge.host.calls).toEqual([])
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded'])(
    '%s, which another site can send, is a 415 even for a good body',
    async (type) => {
      const reply = await edge.post(loginPath, JSON.stringify(good), { headers: { 'content-type': type } })
      expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([415, 'UnsupportedMediaType'])
    },
  )

  it('may name its character set', async () => {
    const reply = await edge.post(loginPath, JSON.stringify(good), {
      headers: { 'content-type': 'application/json; charset=utf-8' },
    })
    expect(reply.statusCode).toBe(200)
  })
})
