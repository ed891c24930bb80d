import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { identifyByToken } from '../../src/api/guard.ts'
import { createServer } from '../../src/api/server.ts'
import { captureLog } from '../support/https-server.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../support/test-edge.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

// The only list that is written by hand: each new open route has to be added here.
const open = [
  'GET /healthz',
  'GET /openapi.json',
  'GET /readyz',
  'GET /v1/ping',
  'HEAD /healthz',
  'HEAD /openapi.json',
  'HEAD /readyz',
  'HEAD /v1/ping',
  'POST /v1/users/default/login',
  'POST /v1/users/default/password/reset',
  'POST /v1/users/default/token/renewal',
]

// Routes with a rule of their own, for example no token for clients on the host itself (metrics.test.ts).
const otherDoors = ['GET /metrics', 'HEAD /metrics']

let edge: TestEdge
beforeAll(async () => {
  edge = await createTestEdge()
})
afterAll(() => edge.stop())

const concrete = (url: string) => url.replace(/:[A-Za-z]+/g, 'some-id')
// Not loopback, for which /metrics has another rule.
const remoteAddress = '192.0.2.7'
const ask = (method: string, url: string, headers: Record<string, string> = {}) =>
  edge.app.inject({ method: method as Method, url, headers, remoteAddress })
const isNothing = (status: number) => status < 200 || status >= 300

it('the open routes are these and no others', () => {
  const declared = edge.routes.routes.filter(({ access }) => access === 'open')
  expect(declared.map(({ method, url }) => `${method} ${url}`).sort()).toEqual(open)
})

it('the routes with a rule of their own are these and no others', () => {
  const declared = edge.routes.routes.filter(({ hasBypass }) => hasBypass)
  expect(declared.map(({ method, url }) => `${method} ${url}`).sort()).toEqual(otherDoors)
})

it('all rooms are in the matrix', () => {
  const urls = edge.routes.routes.map(({ url }) => url)
  expect(urls).toEqual(expect.arrayContaining(['/v1/users/current', '/v1/edge-mgmt/edgehosts/current']))
})

describe('every route', () => {
  it('a route that is not open is a 401 without a token, with garbage, with an expired and with a foreign one', async () => {
    const { access } = await edge.login('alice')
    const claims = JSON.parse(Buffer.from(access.split('.')[1] ?? '', 'base64url').toString()) as never
    const expired = edge.accessTokens.sign({ ...(claims as object), iat: 1, exp: 2 } as never)
    const other = await createTestEdge({ host: edge.host })
    const foreign = (await other.login('alice')).access
    await other.stop()
    for (const { method, url, access: needed } of edge.routes.routes) {
      if (needed === 'open') continue
      for (const token of [undefined, '', 'garbage', 'Bearer x.y.z', expired, foreign]) {
        const reply = await ask(method, concrete(url), token === undefined ? {} : { authorization: token })
        expect(reply.statusCode, `${method} ${url} with ${token}`).toBe(401)
        if (method !== 'HEAD') expect(reply.json<ErrorReply>().code).toBe('Unauthenticated')
      }
    }
  })

  it('a route accepts a user with its role, and refuses a viewer where it needs an administrator', async () => {
    for (const { method, url, access: needed } of edge.routes.routes) {
      for (const [name, role] of [
        ['bob', 'viewer'],
        ['alice', 'admin'],
      ] as const) {
        // A new login each time: some routes end the session.
        const { access } = await edge.login(name)
        const { statusCode } = await ask(method, concrete(url), { authorization: access })
        const what = `${method} ${url} as ${role}: ${statusCode}`
        if (needed === 'admin' && role === 'viewer') expect(statusCode, what).toBe(403)
        else if (needed !== 'open') expect([401, 403, 500].includes(statusCode), what).toBe(false)
        else expect([403, 500].includes(statusCode), what).toBe(false)
      }
    }
  })

  it('another spelling of a path gives no access without a token', async () => {
    const spell: ((url: string) => string)[] = [
      (url) => `/${url}`,
      (url) => url.replaceAll('/', '//'),
      (url) => url.replace('/v1', '/./v1'),
      (url) => url.replace('/v1', '/v1/.'),
      (url) => url.replace('/v1', '/v1/ping/..'),
      (url) => url.replace('/v1', '/v1/ping/%2e%2e'),
      (url) => url.replace('/v1', '/v1/ping/%252e%252e'),
      (url) => url.replace('/v1', '/v1%2fping%2f..'),
      (url) => url.replace('/v1/', '/v1%2f'),
      (url) => `${url};x`,
      (url) => url.replace('/v1', '/v1;x=/ping'),
      (url) => `${url}/`,
      (url) => `${url}%20`,
      (url) => `${url}%00`,
      (url) => `${url}.json`,
      (url) => `${url}?/v1/ping`,
      (url) => `${url}#/v1/ping`,
      (url) => url.replaceAll('/', '\\'),
      (url) => url.replace('/v1', '\\v1'),
      (url) => url.toUpperCase(),
      (url) => `https://host.example:5080${url}`,
      (url) => `/v1/ping/..${url}`,
    ]
    for (const { method, url, access } of edge.routes.routes) {
      if (access === 'open') continue
      for (const change of spell) {
        const path = change(concrete(url))
        const reply = await ask(method, path)
        expect(isNothing(reply.statusCode), `${method} ${path}: ${reply.statusCode}`).toBe(true)
      }
    }
  })

  it('another method, and headers that rewrite, give no access without a token', async () => {
    const rewriting = (path: string): Record<string, string>[] => [
      { 'x-original-url': path },
      { 'x-rewrite-url': path },
      { 'x-http-method-override': 'GET' },
      { 'x-forwarded-for': '127.0.0.1' },
      { 'x-forwarded-user': 'root', 'remote-user': 'root' },
    ]
    for (const { url, access } of edge.routes.routes) {
      if (access === 'open') continue
      const path = concrete(url)
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        for (const headers of [{}, ...rewriting('/v1/ping')]) {
          const { statusCode } = await ask(method, path, headers)
          expect(isNothing(statusCode), `${method} ${path}: ${statusCode}`).toBe(true)
        }
      }
      for (const headers of rewriting(path)) {
        const reply = await ask('GET', '/v1/ping', headers)
        expect(reply.json()).toEqual({ msg: 'pong' })
      }
    }
  })
})

describe('a server', () => {
  const create = () =>
    createServer({
      log: captureLog().log,
      bodyLimitBytes: 1_000,
      mode: 'airgap',
      identify: identifyByToken((token) =>
        token === 'admin' || token === 'viewer' ? { userName: 'x', role: token, sessionUid: 'x' } : undefined,
      ),
      onAuthenticated: () => undefined,
    }).app

  it('a server refuses to start with a route that does not declare its access', async () => {
    const app = create()
    const start = async () => {
      await app.register(async (room) => {
        room.get('/forgotten', async () => 'anyone?')
      })
      await app.ready()
    }
    await expect(start()).rejects.toThrow('GET /forgotten does not declare config.access')
  })

  it('a route that is declared for administrators is refused to others, HEAD included', async () => {
    const app = create()
    app.get('/power', { config: { access: 'admin' } }, async () => ({}))
    const statusOf = async (method: 'GET' | 'HEAD', authorization?: string) =>
      (
        await app.inject({
          method,
          url: '/power',
          headers: authorization === undefined ? {} : { authorization },
        })
      ).statusCode
    for (const method of ['GET', 'HEAD'] as const) {
      expect(await statusOf(method)).toBe(401)
      expect(await statusOf(method, 'viewer')).toBe(403)
      expect(await statusOf(method, 'admin')).toBe(200)
    }
    await app.close()
  })

  it('the token is checked before the body is read', async () => {
    const app = create()
    app.post('/power', { config: { access: 'admin' } }, async () => ({}))
    const payload = 'x'.repeat(2_000)
    const headers = { 'content-type': 'application/json' }
    expect((await app.inject({ method: 'POST', url: '/power', payload, headers })).statusCode).toBe(401)
    const asAdmin = { ...headers, authorization: 'admin' }
    expect((await app.inject({ method: 'POST', url: '/power', payload, headers: asAdmin })).statusCode).toBe(
      413,
    )
    await app.close()
  })
})
