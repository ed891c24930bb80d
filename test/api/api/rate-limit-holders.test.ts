import type { InjectOptions } from 'fastify'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { loadConfig, parseCommandLine } from '../../../src/edgehostd/declarations.ts'
import {
  createTestEdge,
  currentPath,
  loginPath,
  renewalPath,
  type ErrorReply,
  type TestEdge,
  type TestEdgeOptions,
} from '../../support/test-edge.ts'

const { config } = await loadConfig({
  commandLine: parseCommandLine([]),
  environment: {},
  defaultFile: '/nonexistent',
})
const rateLimits = {
  ...config.api.rateLimits,
  ...{ requestsPerSecond: 1, burst: 5, login: { requestsPerSecond: 1, burst: 5 } },
}
// Nothing flows in again while a test runs.
const monotonic = () => 5_000

const opened: TestEdge[] = []
const folders: string[] = []
afterEach(async () => {
  for (const edge of opened.splice(0)) await edge.stop()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

async function setUp(options: TestEdgeOptions = {}) {
  const edge = await createTestEdge({
    rateLimits,
    monotonic,
    ownAddresses: ['2001:db8:1:2::7'],
    queueLength: 100,
    ...options,
  })
  opened.push(edge)
  const ask = async (url: string, options: InjectOptions) =>
    (await edge.app.inject({ url, remoteAddress: near(1), ...options })).statusCode
  const read = (authorization: string, remoteAddress: string) =>
    ask(currentPath, { headers: { authorization }, remoteAddress })
  const renew = (refreshToken: string, remoteAddress: string) =>
    ask(renewalPath, { method: 'POST', payload: { refreshToken }, remoteAddress })
  /** Uses up the rate of an address, or of all addresses in turn, for a resource. */
  const exhaust = async (url: string, address: (index: number) => string, method: 'GET' | 'POST' = 'GET') => {
    let index = 0
    while ((await ask(url, { method, remoteAddress: address(index) })) !== 429) index += 1
    return index
  }
  return { edge, ask, read, renew, exhaust }
}

/** In the on-link /64. */
const near = (index: number) => `2001:db8:1:2::${(index + 0x1000).toString(16)}`

describe('the rate of an on-link /64', () => {
  it('a network has the rate of one client for each address, and eight times as much for all', async () => {
    const { exhaust, ask } = await setUp()
    expect(await exhaust(currentPath, () => near(1))).toBe(5)
    expect(await ask(currentPath, { remoteAddress: near(2) })).toBe(401)
    // 40 for the whole network; 6 of them are used.
    expect(await exhaust(currentPath, (index) => near(index + 10))).toBe(34)
    expect(await ask(currentPath, { remoteAddress: near(500) })).toBe(429)
    expect(await ask(currentPath, { remoteAddress: '2001:db8:1:3::1' })).toBe(401)
  })

  it('a refusal says that the rate of the network is used up', async () => {
    const { edge, exhaust } = await setUp()
    await exhaust(currentPath, (index) => near(index + 10))
    const reply = await edge.app.inject({ url: currentPath, remoteAddress: near(1) })
    expect(reply.json<ErrorReply>().message).toMatch(
      /^more than 8 requests a second from your network; try again in 1 s$/,
    )
  })

  it('the limit of a network does not apply to an address from which a user has logged in', async () => {
    const { edge, exhaust, ask } = await setUp()
    await edge.login('alice', { remoteAddress: near(1) })
    await exhaust(loginPath, (index) => near(index + 10), 'POST')
    expect(await ask(loginPath, { method: 'POST', remoteAddress: near(2) })).toBe(429)
    expect(await ask(loginPath, { method: 'POST', remoteAddress: near(1) })).toBe(400)
    expect(await exhaust(loginPath, () => near(1), 'POST'), 'the own rate holds').toBe(3)
  })
})

describe('a token that is held', () => {
  it('a request with a token counts for its user, from all addresses together, whatever the address has used up', async () => {
    const { edge, exhaust, read } = await setUp()
    const { access } = await edge.login('alice', { remoteAddress: '192.0.2.1' })
    const other = await edge.login('bob', { remoteAddress: '192.0.2.1' })
    await exhaust(currentPath, () => '192.0.2.1')
    const statuses: number[] = []
    for (let count = 0; count < 6; count += 1)
      statuses.push(await read(`Bearer ${access}`, `192.0.2.${count}`))
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    expect(await read(other.access, '192.0.2.1')).toBe(200)
  })

  it('a request with a token in a cookie counts for its user too', async () => {
    const { edge, exhaust, ask } = await setUp()
    const { access } = await edge.login('alice')
    await exhaust(currentPath, () => near(1))
    expect(await ask(currentPath, { cookies: { Authorization: access } })).toBe(200)
    expect(await ask(currentPath, { cookies: { Authorization: `${access}x` } })).toBe(429)
  })

  it('a request no longer counts for its user when the session has ended', async () => {
    const { edge, exhaust, read } = await setUp()
    const { access } = await edge.login('alice')
    await exhaust(currentPath, () => '192.0.2.1')
    edge.sessions.end(edge.sessions.list(), 'logout')
    expect(await read(access, '192.0.2.1')).toBe(429)
  })

  it('after a restart, requests with a token count for their user from the first one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'edgehostd-holders-'))
    folders.push(folder)
    const { edge } = await setUp()
    const { access } = await edge.login('alice')
    // As a kill leaves it: nothing is closed or stopped before.
    await cp(edge.stateDirectory, folder, { recursive: true })
    const { exhaust, read } = await setUp({ stateDirectory: folder, host: edge.host })
    await exhaust(currentPath, () => '192.0.2.1')
    const [head = '', claims = ''] = access.split('.')
    expect(await read(`${head}.${claims}.${'A'.repeat(43)}`, '192.0.2.1'), 'by its uid alone').toBe(429)
    expect(await read(access, '192.0.2.1')).toBe(200)
  })
})

describe('any other token', () => {
  it('a request with an unknown token counts for its address, before a signature is checked', async () => {
    const { edge, exhaust, read } = await setUp()
    const { access } = await edge.login('alice')
    await exhaust(currentPath, () => '192.0.2.1')
    for (const token of [`${access}x`, 'nonsense', edge.accessTokens.sign(claims)]) {
      expect(await read(token, '192.0.2.1')).toBe(429)
    }
  })
})

describe('a renewal', () => {
  it('a renewal counts for the user of its token when the address has used up its rate', async () => {
    const { edge, exhaust, renew } = await setUp()
    const { refresh } = await edge.login('alice')
    await exhaust(currentPath, () => '192.0.2.1')
    expect(await renew(refresh, '192.0.2.1')).toBe(200)
    expect(await renew(refresh, '192.0.2.1'), 'a reply may be lost').toBe(200)
    expect(await renew(`${refresh}x`, '192.0.2.1')).toBe(429)
    expect(await renew('nonsense', '192.0.2.1')).toBe(429)
    const statuses: number[] = []
    for (let count = 0; count < 4; count += 1) statuses.push(await renew(refresh, '192.0.2.1'))
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  it('a renewal counts for its address while that has tokens left, and says how many', async () => {
    const { edge, renew } = await setUp()
    const statuses: number[] = []
    for (let count = 0; count < 6; count += 1) statuses.push(await renew('nonsense', '192.0.2.1'))
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    const reply = await edge.app.inject({
      ...{ method: 'POST', url: renewalPath, remoteAddress: '192.0.2.1' },
      payload: { refreshToken: 'nonsense' },
    })
    expect(reply.headers['retry-after']).toBe('1')
    expect(reply.headers.ratelimit).toBe('"users";r=0;t=1')
  })
})

const claims = {
  sub: 'alice',
  jti: '0b9e1d3c-1f5a-4a4e-9d53-6f1c2b3a4d5e.0',
  iat: Math.floor(Date.now() / 1_000),
  exp: Math.floor(Date.now() / 1_000) + 900,
  role: 'admin',
} as const
