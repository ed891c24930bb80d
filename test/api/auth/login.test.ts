import { describe, expect, it } from 'vitest'
import {
  loginPath,
  type ErrorReply,
  type LoginReply,
  type TestEdge,
  useEdges,
  useOneEdge,
} from '../../support/test-edge.ts'

let edge: TestEdge
const use = (made: TestEdge) => (edge = made)

const good = { username: 'bob', password: 'bob pass' }

describe('a login', () => {
  useEdges(use)

  it('a login gives both tokens and says whether it is the first of the account', async () => {
    const first = await edge.post(loginPath, good)
    expect(first.statusCode).toBe(200)
    const body = first.json<LoginReply>()
    expect(Object.keys(body)).toEqual(['Token', 'IsFirstLogin'])
    expect(Object.keys(body.Token)).toEqual(['Authorization', 'RefreshToken'])
    expect(body.IsFirstLogin).toBe(true)
    expect((await edge.login('bob')).reply.json<LoginReply>().IsFirstLogin).toBe(false)
    expect((await edge.login('alice')).reply.json<LoginReply>().IsFirstLogin).toBe(true)
  })

  it('the reply to a login is not cached, and its type is not guessed', async () => {
    const { headers } = await edge.post(loginPath, good)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-type': 'application/json; charset=utf-8',
    })
  })

  it('a login starts pamtester with fixed arguments, and gives the password on standard input only', async () => {
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

  it('the address of a login is that of its connection, regardless of headers', async () => {
    await edge.post(loginPath, good, {
      remoteAddress: '192.0.2.7',
      headers: { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1', 'x-real-ip': '127.0.0.1' },
    })
    expect(edge.pamCalls()[0]?.args[1]).toBe('rhost=192.0.2.7')
  })

  it('members of the groups and uid 0 are administrators, everyone else is a viewer', async () => {
    for (const [name, role] of [
      ['root', 'admin'],
      ['alice', 'admin'],
      ['bob', 'viewer'],
    ] as const) {
      const { access } = await edge.login(name)
      const me = await edge.get('/v1/users/current', access)
      expect(me.json()).toEqual({ userName: name, role, disablePasswordUpdate: false, sshKeys: [] })
    }
  })

  it('each login gets a session and tokens of its own, whatever tokens the client sends', async () => {
    const first = await edge.login('bob')
    const second = await edge.login('bob', {
      headers: { cookie: `Authorization=${first.access}; RefreshToken=${first.refresh}` },
    })
    expect(second.access).not.toBe(first.access)
    expect(second.refresh).not.toBe(first.refresh)
    expect(edge.sessions.list()).toHaveLength(2)
  })

  it('a login writes neither passwords nor tokens to the log', async () => {
    const { access, refresh } = await edge.login('bob')
    await edge.tryLogin('bob', 'a wrong secret')
    await edge.tryLogin('typed into the wrong field\n', 'x')
    const written = JSON.stringify(edge.lines)
    for (const secret of ['bob pass', access, refresh, 'a wrong secret', 'wrong field'])
      expect(written).not.toContain(secret)
  })
})

describe('cookies', () => {
  useOneEdge(use)

  it('the cookies contain both tokens, and neither scripts nor other sites can use them', async () => {
    const { reply, access, refresh } = await edge.login('bob')
    const attributes = { path: '/v1/', httpOnly: true, secure: true, sameSite: 'Strict' }
    expect(reply.cookies).toEqual([
      { name: 'Authorization', value: access, ...attributes },
      { name: 'RefreshToken', value: refresh, ...attributes },
    ])
  })

  it('setCookie=false sets no cookies', async () => {
    const reply = await edge.post(`${loginPath}?setCookie=false`, good)
    expect(reply.statusCode).toBe(200)
    expect(reply.headers).not.toHaveProperty('set-cookie')
  })

  it('a refused login sets no cookies', async () => {
    expect((await edge.tryLogin('bob', 'wrong')).headers).not.toHaveProperty('set-cookie')
  })
})

describe('a malformed login', () => {
  useOneEdge(use)

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
  ])('a login with %s is a 400 that names the field', async (_what, payload, field) => {
    const reply = await edge.post(loginPath, payload)
    expect(reply.statusCode).toBe(400)
    const { code, message, details, ref } = reply.json<ErrorReply>()
    expect({ code, field: details?.field }).toEqual({ code: 'BadRequest', field })
    expect(message.startsWith(field)).toBe(true)
    expect(ref).toBe(reply.headers['x-request-id'])
    expect(edge.host.calls).toEqual([])
  })

  it.each(['null', '"bob"', '5', 'true', '[]', '{}'])(
    'a login with the body %s is a 400',
    async (payload) => {
      const reply = await edge.post(loginPath, payload, { headers: { 'content-type': 'application/json' } })
      expect(reply.json<ErrorReply>().code).toBe('BadRequest')
      expect(reply.statusCode).toBe(400)
    },
  )

  it('a login without a body is a 400', async () => {
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
  ])('a login with %s is a 400 that discloses nothing about the daemon', async (_what, payload) => {
    const reply = await edge.post(loginPath, payload, { headers: { 'content-type': 'application/json' } })
    expect(reply.statusCode).toBe(400)
    expect(reply.json<ErrorReply>().code).toBe('BadRequest')
    expect(reply.body).not.toMatch(/node_modules|\.ts|at \w+ \(/)
    expect(edge.host.calls).toEqual([])
  })

  it('unknown fields of a login are ignored', async () => {
    const reply = await edge.post(loginPath, { ...good, role: 'admin', sub: 'root', extra: { a: [1] } })
    const { Token } = reply.json<LoginReply>()
    expect((await edge.get('/v1/users/current', Token.Authorization)).json()).toMatchObject({
      userName: 'bob',
      role: 'viewer',
    })
  })

  it.each(['setCookie=maybe', 'extendedSession=2', 'setCookie=true&setCookie=false'])(
    'a login with the query %s is a 400',
    async (query) => {
      const reply = await edge.post(`${loginPath}?${query}`, good)
      expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([400, 'BadRequest'])
    },
  )
})

describe('the content type of a login', () => {
  useOneEdge(use)

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
  ])('a login with the content type %j is refused', async (type) => {
    const payload = '{"username":["bob"],"password":5}'
    const reply = await edge.post(loginPath, payload, { headers: { 'content-type': type } })
    expect([400, 415]).toContain(reply.statusCode)
    expect(edge.host.calls).toEqual([])
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded'])(
    'a valid login with the content type %s, which another site can send, is a 415',
    async (type) => {
      const reply = await edge.post(loginPath, JSON.stringify(good), { headers: { 'content-type': type } })
      expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([415, 'UnsupportedMediaType'])
    },
  )

  it('the content type of a login may name its character set', async () => {
    const reply = await edge.post(loginPath, JSON.stringify(good), {
      headers: { 'content-type': 'application/json; charset=utf-8' },
    })
    expect(reply.statusCode).toBe(200)
  })
})
