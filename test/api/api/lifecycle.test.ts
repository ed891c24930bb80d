import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lifecycleHeaders, versionOf, type Lifecycle } from '../../../src/api/lifecycle.ts'
import { identifyByToken } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

const sunset: Lifecycle = { phase: 'sunset', date: '2027-06-30', successor: '/v2/test' }
const deprecated: Lifecycle = { phase: 'deprecated', date: '2026-01-31' }

function createEdge() {
  const { app, routes } = createServer({
    log: captureLog().log,
    bodyLimitBytes: 1_000,
    mode: 'airgap',
    identify: identifyByToken((token) =>
      token === 'any' ? { userName: 'x', role: 'viewer', sessionUid: 'x' } : undefined,
    ),
    onAuthenticated: () => undefined,
  })
  app.get('/v1/test', { config: { access: 'viewer', lifecycle: sunset } }, async () => ({}))
  app.get('/v1alpha1/test', { config: { access: 'viewer', lifecycle: deprecated } }, async () => ({}))
  app.get('/v2/test', { config: { access: 'viewer' } }, async () => ({}))
  const ask = async (url: string, authorization = 'any', method: 'GET' | 'HEAD' = 'GET') => {
    const { statusCode, headers } = await app.inject({ method, url, headers: { authorization } })
    return [statusCode, headers.deprecation, headers.sunset, headers.link]
  }
  return { app, routes, ask }
}

describe('a route', () => {
  const day = 'Wed, 30 Jun 2027 00:00:00 GMT'
  const link = '</v2/test>; rel="successor-version"'

  it('a route in its sunset names the day, what comes then, and its successor', async () => {
    const { ask } = createEdge()
    expect(await ask('/v1/test')).toEqual([200, '@1814313600', day, link])
    expect(await ask('/v1/test', 'any', 'HEAD')).toEqual([200, '@1814313600', day, link])
  })

  it('a deprecated route says since when', async () => {
    expect(await createEdge().ask('/v1alpha1/test')).toEqual([200, '@1769817600', undefined, undefined])
  })

  it('a refusal of a deprecated route has the lifecycle headers too', async () => {
    expect(await createEdge().ask('/v1/test', 'garbage')).toEqual([401, '@1814313600', day, link])
  })

  it('a route in production has no lifecycle header and no hook for it', async () => {
    expect(await createEdge().ask('/v2/test')).toEqual([200, undefined, undefined, undefined])
    const { app } = createEdge()
    const hooks: number[] = []
    app.addHook('onRoute', ({ onRequest }) => void hooks.push([onRequest ?? []].flat().length))
    app.post('/v2/one', { config: { access: 'open' } }, async () => ({}))
    app.post('/v2/two', { config: { access: 'open', lifecycle: { phase: 'production' } } }, async () => ({}))
    app.post('/v1/two', { config: { access: 'open', lifecycle: sunset } }, async () => ({}))
    expect(hooks[1]).toBe(hooks[0])
    expect(hooks[2]).toBe(hooks[0]! + 1)
  })

  it('a route is in the table with its version and phase', () => {
    const { routes } = createEdge()
    const found = routes.routes.filter(({ method }) => method === 'GET')
    expect(found.map(({ url, version, phase }) => [url, version, phase])).toEqual([
      ['/v1/test', 'v1', 'sunset'],
      ['/v1alpha1/test', 'v1alpha1', 'deprecated'],
      ['/v2/test', 'v2', 'production'],
    ])
  })

  it.each(['tomorrow', '2027-02-30', '2027-13-01', '2027-06-30T00:00:00Z', ''])(
    'a route cannot be declared with the date "%s"',
    (date) => {
      expect(() => lifecycleHeaders({ phase: 'deprecated', date })).toThrow('is not a day')
    },
  )
})

it.each([
  ['/v1/ping', 'v1'],
  ['/v1alpha1/ping', 'v1alpha1'],
  ['/v12beta3/ping/:uid', 'v12beta3'],
  ['/openapi.json', undefined],
  ['/vx/ping', undefined],
  ['/ping/v1/x', undefined],
])('the version of %s is %s', (url, version) => {
  expect(versionOf(url)).toBe(version)
})

describe('of this API', () => {
  let edge: TestEdge
  beforeAll(async () => {
    edge = await createTestEdge()
  })
  afterAll(() => edge.stop())

  it('every route has a version, except those for machines and the pages', () => {
    const without = edge.routes.routes.filter(({ version }) => version === undefined)
    expect([...new Set(without.map(({ url }) => url))].sort()).toEqual([
      '/',
      '/console/:file',
      '/healthz',
      '/metrics',
      '/openapi.json',
      '/readyz',
    ])
  })

  it('no route is in its sunset or deprecated', () => {
    expect(edge.routes.routes.filter(({ phase }) => phase !== 'production')).toEqual([])
  })
})
