import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { identifyByToken } from '../../src/api/guard.ts'
import { createServer } from '../../src/api/server.ts'
import { captureLog } from '../support/https-server.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../support/test-edge.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

type Needed = 'open' | 'viewer' | 'admin'

/** Every route that is not HEAD, by the role that it needs. A new route has to be added here. */
const table: Readonly<Record<Needed, readonly string[]>> = {
  open: [
    'GET /',
    'GET /console/:file',
    'GET /healthz',
    'GET /openapi.json',
    'GET /readyz',
    'GET /v1/edge-mgmt/icons/:digest',
    'GET /v1/ping',
    'POST /v1/users/default/login',
    'POST /v1/users/default/password/reset',
    'POST /v1/users/default/token/renewal',
  ],
  viewer: [
    'GET /v1/edge-mgmt/cluster/applications',
    'GET /v1/edge-mgmt/cluster/certificates',
    'GET /v1/edge-mgmt/cluster/details',
    'GET /v1/edge-mgmt/cluster/events',
    'GET /v1/edge-mgmt/cluster/registry/content/details',
    'GET /v1/edge-mgmt/cluster/registry/content/sync-status/details',
    'GET /v1/edge-mgmt/cluster/registry/health',
    'GET /v1/edge-mgmt/cluster/revisions',
    'GET /v1/edge-mgmt/clusters/current/machinepools',
    'GET /v1/edge-mgmt/clusters/current/nodes',
    'GET /v1/edge-mgmt/content/bundles',
    'GET /v1/edge-mgmt/content/bundles/:uid',
    'GET /v1/edge-mgmt/content/bundles/:uid/entries',
    'GET /v1/edge-mgmt/content/images',
    'GET /v1/edge-mgmt/content/registry',
    'GET /v1/edge-mgmt/content/uploads',
    'GET /v1/edge-mgmt/content/uploads/:uid',
    'GET /v1/edge-mgmt/content/uploads/:uid/missing',
    'GET /v1/edge-mgmt/content/usage',
    'GET /v1/edge-mgmt/edgehosts/current',
    'GET /v1/edge-mgmt/edgehosts/current/actions',
    'GET /v1/edge-mgmt/edgehosts/current/attention',
    'GET /v1/edge-mgmt/edgehosts/current/configurations',
    'GET /v1/edge-mgmt/edgehosts/current/configurations/status',
    'GET /v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key',
    'GET /v1/edge-mgmt/edgehosts/current/uploaded-content/details',
    'GET /v1/edge-mgmt/edgehosts/current/usage',
    'GET /v1/edge-mgmt/edgehosts/current/userdata',
    'GET /v1/edge-mgmt/events/lifecycle',
    'GET /v1/edge-mgmt/events/stream',
    'GET /v1/edge-mgmt/edgehosts/current/hostname',
    'GET /v1/edge-mgmt/edgehosts/current/time',
    'GET /v1/edge-mgmt/network/bonds',
    'GET /v1/edge-mgmt/network/bonds/:name',
    'GET /v1/edge-mgmt/network/bridges',
    'GET /v1/edge-mgmt/network/bridges/:name',
    'GET /v1/edge-mgmt/network/changes',
    'GET /v1/edge-mgmt/network/changes/:uid',
    'GET /v1/edge-mgmt/network/config-options',
    'GET /v1/edge-mgmt/network/interfaces',
    'GET /v1/edge-mgmt/network/interfaces/:name',
    'GET /v1/edge-mgmt/network/management-interface',
    'GET /v1/edge-mgmt/network/vlans',
    'GET /v1/edge-mgmt/network/vlans/:name',
    'GET /v1/edge-mgmt/platform',
    'GET /v1/edge-mgmt/settings',
    'GET /v1/users/current',
    'PATCH /v1/users/current',
    'POST /v1/users/default/logout',
    'GET /v1/users/sessions',
    'POST /v1/edge-mgmt/edgehosts/current/tickets',
    'DELETE /v1/users/sessions/:uid',
  ],
  admin: [
    'GET /metrics',
    'GET /v1/edge-mgmt/cluster/kubeconfig',
    'DELETE /v1/edge-mgmt/network/bonds/:name',
    'POST /v1/edge-mgmt/network/bonds/:name',
    'PUT /v1/edge-mgmt/network/bonds/:name',
    'DELETE /v1/edge-mgmt/network/bridges/:name',
    'POST /v1/edge-mgmt/network/bridges/:name',
    'PUT /v1/edge-mgmt/network/bridges/:name',
    'DELETE /v1/edge-mgmt/network/vlans/:name',
    'POST /v1/edge-mgmt/network/vlans/:name',
    'PUT /v1/edge-mgmt/network/vlans/:name',
    'PUT /v1/edge-mgmt/network/interfaces/:name/config',
    'PUT /v1/edge-mgmt/network/management-interface',
    'PUT /v1/edge-mgmt/edgehosts/current/hostname',
    'PUT /v1/edge-mgmt/edgehosts/current/time',
    'POST /v1/edge-mgmt/network/changes/:uid/actions/confirm',
    'POST /v1/edge-mgmt/network/changes/:uid/actions/revert',
    'GET /v1/edge-mgmt/cluster/pods/:namespace/:name/logs',
    'GET /v1/edge-mgmt/edgehosts/current/file-download/:filePath',
    'GET /v1/edge-mgmt/edgehosts/current/file-download/files',
    'GET /v1/edge-mgmt/edgehosts/connectivity/check',
    'GET /v1/edge-mgmt/edgehosts/current/download-logs',
    'GET /v1/edge-mgmt/edgehosts/current/logs',
    'GET /v1/edge-mgmt/edgehosts/current/generate-logs-status',
    'POST /v1/edge-mgmt/edgehosts/current/generate-logs',
    'GET /v1/edge-mgmt/edgehosts/connectivity/ping',
    'GET /v1/edge-mgmt/edgehosts/connectivity/traceroute',
    'DELETE /v1/edge-mgmt/cluster',
    'GET /v1/edge-mgmt/cluster',
    'PATCH /v1/edge-mgmt/cluster',
    'POST /v1/edge-mgmt/cluster',
    'PUT /v1/edge-mgmt/cluster',
    'PATCH /v1/edge-mgmt/cluster/:clusterName',
    'PUT /v1/edge-mgmt/cluster/:clusterName',
    'PUT /v1/edge-mgmt/cluster/profiles',
    'POST /v1/edge-mgmt/cluster/profiles/variables/validate',
    'POST /v1/edge-mgmt/cluster/renew-certificates',
    'POST /v1/edge-mgmt/cluster/rollback',
    'PUT /v1/edge-mgmt/cluster/settings',
    'GET /v1/edge-mgmt/clusters/archive/embedded/details',
    'GET /v1/edge-mgmt/clusters/archive/overridden/details',
    'DELETE /v1/edge-mgmt/clusters/archive/update',
    'GET /v1/edge-mgmt/clusters/archive/update/details',
    'DELETE /v1/edge-mgmt/content/bundles/:uid',
    'PUT /v1/edge-mgmt/edgehosts/current/configurations',
    'POST /v1/edge-mgmt/edgehosts/current/userdata',
    'PUT /v1/edge-mgmt/edgehosts/current/userdata',
    'POST /v1/edge-mgmt/edgehosts/current/actions/reboot',
    'POST /v1/edge-mgmt/edgehosts/current/actions/reset',
    'POST /v1/edge-mgmt/edgehosts/current/actions/shutdown',
    'DELETE /v1/edge-mgmt/edgehosts/current/actions/:uid',
    'GET /v1/edge-mgmt/content/registry/password',
    'POST /v1/edge-mgmt/content/uploads',
    'DELETE /v1/edge-mgmt/content/uploads/:uid',
    'POST /v1/edge-mgmt/content/uploads/:uid/actions/publish',
    'PATCH /v1/edge-mgmt/content/uploads/:uid/blobs/:digest',
    'POST /v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig',
    'POST /v1/edge-mgmt/edgehosts/current/actions/upload-content',
    'GET /v1/edge-mgmt/edgehosts/current/audits',
    'GET /v1/edge-mgmt/edgehosts/current/audits/download',
    'GET /v1/edge-mgmt/edgehosts/current/audits/filters',
    'GET /v1/edge-mgmt/edgehosts/current/audits/verify',
    'GET /v1/edge-mgmt/edgehosts/current/error-logs',
    'GET /v1/edge-mgmt/edgehosts/current/inventory',
    'GET /v1/edge-mgmt/edgehosts/current/status',
  ],
}
const rows = Object.entries(table).flatMap(([needed, each]) => each.map((route) => [route, needed] as const))

// Routes with a rule of their own, for example no token for clients on the host itself (metrics.test.ts).
const otherDoors = ['GET /metrics', 'HEAD /metrics']

// A viewer and an administrator.
const users = ['bob', 'alice']

const folder = mkdtempSync(join(tmpdir(), 'edgehostd-access-'))
const socket = join(folder, 'edgehostd.sock')
let edge: TestEdge
const tokens = new Map<string, string | undefined>()
beforeAll(async () => {
  edge = await createTestEdge({ socket })
  await edge.daemon.rooms.api.listen(0)
  const { access } = await edge.login('alice')
  const claims = JSON.parse(Buffer.from(access.split('.')[1] ?? '', 'base64url').toString()) as object
  const other = await createTestEdge({ host: edge.host })
  for (const [caller, token] of Object.entries({
    nobody: undefined,
    'an empty token': '',
    garbage: 'garbage',
    'garbage behind Bearer': 'Bearer x.y.z',
    'an expired token': edge.accessTokens.sign({ ...claims, iat: 1, exp: 2 } as never),
    'a token of another host': (await other.login('alice')).access,
  }))
    tokens.set(caller, token)
  await other.stop()
})
afterAll(async () => {
  await edge.stop()
  rmSync(folder, { recursive: true })
})

const concrete = (url: string) => url.replace(/:[A-Za-z]+/g, 'some-id')
// Not loopback, for which /metrics has another rule.
const remoteAddress = '192.0.2.7'
const ask = (method: string, url: string, headers: Record<string, string> = {}) =>
  edge.app.inject({ method: method as Method, url, headers, remoteAddress })
const isNothing = (status: number) => status < 200 || status >= 300
/** A user whose session some routes end. */
async function tokenOf(name: string): Promise<string> {
  const token = tokens.get(name) ?? ''
  if (edge.sessions.authenticate(token)) return token
  tokens.set(name, (await edge.login(name)).access)
  return tokenOf(name)
}

/** The status of a request over root's socket. */
async function askAsRoot(method: string, path: string): Promise<number | undefined> {
  const sent = request({ socketPath: socket, method, path, agent: false }).end()
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  sent.destroy()
  return reply.statusCode
}

it('every declared route stands in the table with its role, HEAD with the role of GET', () => {
  const declared = edge.routes.routes.map(({ method, url, access }) => [`${method} ${url}`, access] as const)
  const [heads, others] = [true, false].map((isHead) =>
    declared.filter(([route]) => route.startsWith('HEAD ') === isHead),
  )
  expect(Object.fromEntries(others!)).toEqual(Object.fromEntries(rows))
  expect(others).toHaveLength(rows.length)
  const ofGet = heads!.map(([route]) => route.replace('HEAD', 'GET'))
  expect(heads!.map(([, access]) => access)).toEqual(ofGet.map((route) => Object.fromEntries(rows)[route]))
})

it('the routes with a rule of their own are these and no others', () => {
  const declared = edge.routes.routes.filter(({ hasBypass }) => hasBypass)
  expect(declared.map(({ method, url }) => `${method} ${url}`).sort()).toEqual(otherDoors)
})

describe('every route', () => {
  it.each(rows)('%s is open to the right callers: %s', async (route, needed) => {
    const [method = '', url = ''] = route.split(' ')
    const path = concrete(url)
    const hasHead = edge.routes.routes.some((each) => each.method === 'HEAD' && each.url === url)
    // An open route may refuse a caller by a rule of its own.
    const refusals = needed === 'open' ? [403, 500] : [401, 403, 500]
    const said = (status = 500) => (refusals.includes(status) ? status : 'may')
    for (const each of method === 'GET' && hasHead ? ['GET', 'HEAD'] : [method]) {
      const found: Record<string, unknown> = {}
      for (const [caller, token] of tokens)
        if (!users.includes(caller)) {
          const reply = await ask(each, path, token === undefined ? {} : { authorization: token })
          found[caller] = said(reply.statusCode)
          if (needed !== 'open' && each !== 'HEAD')
            expect(reply.json<ErrorReply>().code, caller).toBe('Unauthenticated')
        }
      for (const name of users)
        found[name] = said((await ask(each, path, { authorization: await tokenOf(name) })).statusCode)
      found.root = said(await askAsRoot(each, path))
      const stranger = needed === 'open' ? 'may' : 401
      const strangers = [...tokens.keys()].filter((caller) => !users.includes(caller))
      expect(found, each).toEqual({
        ...Object.fromEntries(strangers.map((caller) => [caller, stranger])),
        ...{ bob: needed === 'admin' ? 403 : 'may', alice: 'may', root: 'may' },
      })
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
    const closed = edge.routes.routes.filter(({ access }) => access !== 'open')
    for (const path of new Set(closed.map(({ url }) => concrete(url)))) {
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
        token === 'admin' ? { userName: 'x', role: token, sessionUid: 'x' } : undefined,
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
