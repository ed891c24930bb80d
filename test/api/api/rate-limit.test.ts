import type { InjectOptions } from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { loadConfig, parseCommandLine, type Config } from '../../../src/edgehostd/declarations.ts'
import { identifyByToken } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import { captureLog } from '../../support/https-server.ts'
import {
  createTestEdge,
  loginPath,
  resetPath,
  sessionsPath,
  type ErrorReply,
} from '../../support/test-edge.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

const { config } = await loadConfig({
  commandLine: parseCommandLine([]),
  environment: {},
  defaultFile: '/nonexistent',
})
const defaults = config.api.rateLimits

const opened: (() => unknown)[] = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})

/** A server with a few routes and a constant clock. */
function createEdge(settings: Partial<Config['api']['rateLimits']> = {}) {
  const clock = createTurningClock()
  const { log, lines } = captureLog()
  const looks: string[] = []
  const { app } = createServer({
    log,
    bodyLimitBytes: 1_000,
    mode: 'airgap',
    rateLimits: { settings: { ...defaults, ...settings }, monotonic: () => clock.monotonic() },
    identify: identifyByToken((token) => {
      looks.push(token)
      return undefined
    }),
    onAuthenticated: () => undefined,
  })
  for (const url of ['/v1/things', '/v1/things/:uid', '/v1/edge-mgmt/clusters', '/v1/others']) {
    app.get(url, { config: { access: 'open' } }, async () => ({}))
  }
  app.get('/v1/things/free', { config: { access: 'open', limited: false } }, async () => ({}))
  app.post('/v1/closed', { config: { access: 'admin' } }, async () => ({}))
  opened.push(() => app.close())

  const ask = (url: string, options: InjectOptions = {}) =>
    app.inject({ url, remoteAddress: '192.0.2.1', ...options })
  /** How many are let through before one is refused. */
  const countFree = async (url: string, remoteAddress = '192.0.2.1') => {
    let count = 0
    while ((await ask(url, { remoteAddress })).statusCode !== 429) if ((count += 1) > 1_000) return Infinity
    return count
  }
  return { app, clock, lines, looks, ask, countFree }
}

describe('an address', () => {
  it('a client gets 50 requests to a resource at once, then 10 a second, by default', async () => {
    const { clock, countFree } = createEdge()
    expect(await countFree('/v1/things')).toBe(50)
    clock.turn(99)
    expect(await countFree('/v1/things')).toBe(0)
    clock.turn(1)
    expect(await countFree('/v1/things')).toBe(1)
    clock.turn(1_000)
    expect(await countFree('/v1/things')).toBe(10)
    clock.turn(3_600_000)
    expect(await countFree('/v1/things')).toBe(50)
  })

  it('a client gets another rate for a resource with its own rate', async () => {
    const { countFree } = createEdge({ resources: ['clusters=50/5', 'others=2/1'] })
    expect(await countFree('/v1/edge-mgmt/clusters')).toBe(250)
    expect(await countFree('/v1/others')).toBe(2)
    expect(await countFree('/v1/things')).toBe(50)
  })

  it('all paths below a resource count together, found or not, whatever the method', async () => {
    const { ask, countFree } = createEdge()
    await ask('/v1/things/a')
    await ask('/v1/things/a/b/c?d')
    await ask('/v1/things', { method: 'DELETE' })
    await ask('/v1/things/%zz')
    await ask(`/v1/things/${'x'.repeat(300)}`)
    expect(await countFree('/v1/things')).toBe(45)
  })

  it('all paths without a resource count together', async () => {
    const { countFree } = createEdge()
    expect(await countFree('/v1/nothing-1')).toBe(50)
    for (const url of ['/', '/v1/nothing-2', '/v2/things', '/robots.txt', '/%zz']) {
      expect(await countFree(url)).toBe(0)
    }
    expect(await countFree('/v1/things')).toBe(50)
  })

  it('a client does not use up the rate of others; all of an IPv6 /64 are one', async () => {
    const { countFree } = createEdge()
    for (const [address, free] of [
      ['192.0.2.1', 50],
      ['192.0.2.2', 50],
      ['::ffff:192.0.2.1', 0],
      ['2001:db8:1:2::1', 50],
      ['2001:db8:1:2:ffff::9', 0],
      ['2001:db8:1:3::1', 50],
    ] as const) {
      expect([address, await countFree('/v1/things', address)]).toEqual([address, free])
    }
  })

  it('a route that is not limited accepts any number of requests and has no limit headers', async () => {
    const { ask, countFree } = createEdge()
    expect(await countFree('/v1/things/free')).toBe(Infinity)
    expect(Object.keys((await ask('/v1/things/free')).headers).join()).not.toContain('ratelimit')
    expect(await countFree('/v1/things')).toBe(50)
  })

  it('a client has no limit when rate limits are disabled', async () => {
    const { ask, countFree } = createEdge({ enabled: false })
    expect(await countFree('/v1/things')).toBe(Infinity)
    expect(Object.keys((await ask('/v1/things')).headers).join()).not.toContain('ratelimit')
  })
})

describe('a refused request', () => {
  it('a request over the rate gets the error body, Retry-After and the fields of the draft', async () => {
    const { ask, countFree } = createEdge()
    await countFree('/v1/things')
    const reply = await ask('/v1/things')
    expect(reply.statusCode).toBe(429)
    expect(reply.json<ErrorReply>()).toEqual({
      code: 'TooManyRequests',
      message: 'more than 10 requests a second; try again in 1 s',
      ref: reply.headers['x-request-id'],
    })
    expect(reply.headers).toMatchObject({
      'retry-after': '1',
      'ratelimit-policy': '"things";q=50;w=5',
      ratelimit: '"things";r=0;t=1',
      'content-type': 'application/json; charset=utf-8',
      'x-content-type-options': 'nosniff',
    })
  })

  it('a client is accepted again after the seconds in Retry-After', async () => {
    const { clock, ask, countFree } = createEdge({ requestsPerSecond: 1, burst: 7 })
    expect(await countFree('/v1/things')).toBe(7)
    clock.turn(Number((await ask('/v1/things')).headers['retry-after']) * 1_000)
    expect((await ask('/v1/things')).statusCode).toBe(200)
  })

  it('a request over the rate is refused before its token is checked', async () => {
    const { looks, ask } = createEdge({ requestsPerSecond: 1, burst: 2 })
    const statuses: number[] = []
    for (let count = 0; count < 4; count += 1) {
      const headers = { authorization: `token ${count}` }
      statuses.push((await ask('/v1/closed', { method: 'POST', headers })).statusCode)
    }
    expect(statuses).toEqual([401, 401, 429, 429])
    expect(looks).toEqual(['token 0', 'token 1'])
  })

  it.each([
    [loginPath, 400],
    ['/v1/nothing', 404],
  ])('a request over the rate is refused before its body is read: %s', async (url, status) => {
    const { app, ask } = createEdge({
      requestsPerSecond: 1,
      burst: 1,
      login: { requestsPerSecond: 1, burst: 1 },
    })
    app.post(loginPath, { config: { access: 'open', bucket: 'login' } }, async () => ({}))
    const headers = { 'content-type': 'application/json' }
    const send = async () => (await ask(url, { method: 'POST', headers, payload: '{broken' })).statusCode
    expect([await send(), await send()]).toEqual([status, 429])
  })

  it('requests over the rate have no log lines of their own, but one a minute together', async () => {
    const { lines, ask, countFree } = createEdge()
    await countFree('/v1/things')
    await ask('/v1/things')
    const loud = lines.filter(({ level }) => Number(level) >= 30)
    expect(loud).toEqual([
      expect.objectContaining({
        level: 40,
        msg: expect.stringMatching(/^requests were refused at the rate limit of api.rateLimits/) as string,
        things: 1,
      }),
    ])
    expect(lines.filter(({ status }) => status === 429)).toHaveLength(2)
  })
})

describe('a reply', () => {
  it('a reply says how much is left once that is less than half, and for how many seconds it has to last', async () => {
    const { ask } = createEdge()
    const said: unknown[] = []
    for (let count = 0; count < 50; count += 1) said.push((await ask('/v1/things')).headers.ratelimit)
    expect(said.slice(0, 25).filter((each) => each !== undefined)).toEqual([])
    expect([25, 29, 30, 48, 49].map((index) => said[index])).toEqual([
      '"things";r=24;t=3',
      '"things";r=20;t=2',
      '"things";r=19;t=2',
      '"things";r=1;t=1',
      '"things";r=0;t=1',
    ])
  })

  it('HEAD counts as one request, and so does an error', async () => {
    const { ask } = createEdge()
    for (let count = 0; count < 26; count += 1) await ask('/v1/things')
    const left = async (options: InjectOptions, url = '/v1/things') =>
      (await ask(url, options)).headers.ratelimit
    expect(await left({ method: 'HEAD' })).toBe('"things";r=23;t=3')
    expect(await left({ method: 'PUT' })).toBe('"things";r=22;t=3')
    expect(await left({}, '/v1/things/a/b')).toBe('"things";r=21;t=3')
    expect(await left({}, '/v1/things/%zz')).toBe('"things";r=20;t=2')
  })
})

describe('the routes of the daemon', () => {
  // One request leaves nothing in these buckets, so that its reply has the fields.
  const tight = { requestsPerSecond: 1, burst: 1, login: { requestsPerSecond: 1, burst: 1 } }
  const createLimited = async (settings: Partial<Config['api']['rateLimits']> = tight) => {
    const rateLimits = { ...defaults, ...settings }
    const edge = await createTestEdge({ rateLimits, refusalDelayMs: 0 })
    opened.push(() => edge.stop())
    return edge
  }

  it('login and password reset count together, 10 at once, and nothing else with them', async () => {
    const edge = await createLimited({})
    let count = 0
    const policies = new Set<unknown>()
    for (;;) {
      const { statusCode, headers } = await edge.post([loginPath, resetPath][count % 2]!, {})
      policies.add(headers['ratelimit-policy'])
      if (statusCode !== 400) break
      count += 1
    }
    expect([...policies]).toEqual([undefined, '"login";q=10;w=5'])
    // The clock runs on meanwhile.
    expect(count).toBeGreaterThanOrEqual(10)
    expect(count).toBeLessThan(20)
    expect((await edge.get(sessionsPath)).statusCode).toBe(401)
  })

  it('only ping, healthz, readyz and metrics have no limit', async () => {
    const edge = await createLimited({ ...tight, blobs: { requestsPerSecond: 1, burst: 1 } })
    const free = new Set<string>()
    for (const { method, url } of edge.routes.routes) {
      const reply = await edge.app.inject({ method: method as 'GET', url: url.replace(/:[a-z]+/i, 'x') })
      if (reply.headers['ratelimit-policy'] === undefined) free.add(url)
    }
    expect([...free].sort()).toEqual(['/healthz', '/metrics', '/readyz', '/v1/ping'])
  })

  it('every limited resource is known to the configuration', async () => {
    const edge = await createLimited()
    const names = edge.routes.routes.map(({ url }) => url.replace(/:[a-z]+/i, 'x'))
    const resources = new Set<string>()
    for (const url of names) {
      const { headers } = await edge.app.inject({ method: 'DELETE', url: `${url}/x/y/z` })
      resources.add(/^"(.+)"/.exec(String(headers['ratelimit-policy']))?.[1] ?? url)
    }
    expect(resources.size).toBeGreaterThan(3)
    for (const resource of resources) {
      const flag = `--api.rateLimits.resources=${resource}=50/5`
      const load = loadConfig({ commandLine: parseCommandLine([flag]), environment: {}, defaultFile: '/no' })
      await expect(load).resolves.toBeDefined()
    }
  })
})

it('a setting without a known resource or a rate is refused with its reason', async () => {
  const commandLine = parseCommandLine(['--api.rateLimits.resources=cluster=50/5,moon=1/1'])
  await expect(loadConfig({ commandLine, environment: {}, defaultFile: '/no' })).rejects.toThrow(
    /resources\[1\] is "moon=1\/1"; it must be <resource>=<requests a second, at most 99999>\/<burst, at most 999>/,
  )
})
