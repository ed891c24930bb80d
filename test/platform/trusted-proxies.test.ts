import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { configuration } from '../../src/edgeplatformd/declarations.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { minuteMs } from '../support/turning-clock.ts'

const password = 'a long password'
const proxy = '10.0.0.1'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>

beforeAll(async () => {
  platform = await createTestPlatform({
    rateLimits: { enabled: true },
    flags: ['--api.trustedProxies=10.0.0.0/24,2001:db8:ff::1'],
  })
  await platform.addUser('root@plant.example', password, ['admin'])
  admin = await platform.signIn('root@plant.example', password)
})
afterAll(() => platform.close())

/** A request over a connection from an address, with the field `X-Forwarded-For` as it is, or without one. */
async function ask(remoteAddress: string, forwarded?: string | string[], url = '/v1/projects', headers = {}) {
  const field = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  const reply = await platform.app.inject({
    method: 'GET',
    url,
    remoteAddress,
    headers: { ...headers, ...field },
  })
  return { status: reply.statusCode, text: reply.body }
}

/** How many requests are accepted before one is refused; the clock stops, so that no bucket gets a token meanwhile. */
async function countFree(address: string, forwarded?: (count: number) => string) {
  const clock = vi.spyOn(platform.clock, 'monotonic').mockReturnValue(platform.clock.monotonic())
  let free = 0
  while (free <= 100 && (await ask(address, forwarded?.(free))).status !== 429) free += 1
  clock.mockRestore()
  return free
}

/** The address in the audit record of a sign-in that is refused. */
async function addressOf(remoteAddress: string, forwarded?: string) {
  const reply = await platform.app.inject({
    ...{ method: 'POST', url: '/v1/auth/authenticate', remoteAddress },
    payload: { emailId: 'root@plant.example', password: `wrong at ${platform.clock.now()}` },
    ...(forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } }),
  })
  expect(reply.statusCode).toBe(401)
  const { items } = (
    await platform.app.inject({
      ...{
        method: 'GET',
        url: `/v1/audits?filters=metadata.uid=${String(reply.headers.audituid)}`,
        headers: admin,
      },
    })
  ).json<{ items: { spec: { actor: { address: string } } }[] }>()
  return items[0]?.spec.actor.address
}

/** Whether its bucket is nearly empty: some of 30 requests at once, less than it holds, are refused. */
const isLimited = async (...from: Parameters<typeof ask>) =>
  (await Promise.all(Array.from({ length: 30 }, () => ask(...from)))).some(({ status }) => status === 429)

describe('a client behind a trusted proxy', () => {
  it('has a rate of its own, and so have others behind it and the proxy itself', async () => {
    const free = await countFree(proxy, () => '192.0.2.1')
    expect(free).toBe(50)
    expect(await isLimited(proxy, '192.0.2.1')).toBe(true)
    expect((await ask(proxy, '192.0.2.2')).status).toBe(401)
    expect((await ask(proxy)).status).toBe(401)
    // Whichever proxy it comes through.
    expect(await isLimited('10.0.0.2', '192.0.2.1')).toBe(true)
    expect(await isLimited('192.0.2.1')).toBe(true)
  })

  it('gets no other rate by what it writes into the field itself', async () => {
    expect(await countFree(proxy, (count) => `198.51.100.${count}, 192.0.2.3`)).toBe(50)
  })

  it('is named in the audit trail, and in the lines of the log', async () => {
    expect(await addressOf(proxy, '203.0.113.9, 192.0.2.50')).toBe('192.0.2.50')
    expect(await addressOf('::ffff:10.0.0.1', '[2001:db8::7]:4711')).toBe('2001:db8::7')
    expect(await addressOf('2001:db8:ff::1', '192.0.2.51, 10.0.0.3')).toBe('192.0.2.51')
    expect(await addressOf(proxy)).toBe(proxy)
    const lines = platform.lines.filter(({ address }) => address === '192.0.2.50')
    expect(lines.length).toBeGreaterThan(0)
  })

  it('is guarded against guesses by itself', async () => {
    const guess = async (address: string) => {
      const reply = await platform.app.inject({
        ...{ method: 'POST', url: '/v1/auth/authenticate', remoteAddress: proxy },
        headers: { 'x-forwarded-for': address },
        payload: { emailId: 'unknown@plant.example', password: 'a guess' },
      })
      return reply.json<{ code: string }>().code
    }
    const codes = []
    for (let count = 0; count < 12; count += 1) codes.push(await guess('192.0.2.60'))
    expect(codes.at(-1)).toBe('TooManyAttempts')
    expect(await guess('192.0.2.61')).not.toBe('TooManyRequests')
  })
})

describe('the field X-Forwarded-For', () => {
  it('is ignored from every other address', async () => {
    // Each refusal has a record of its own again.
    platform.clock.turn(minuteMs)
    expect(await addressOf('192.0.2.70', '203.0.113.1')).toBe('192.0.2.70')
    expect(await addressOf('10.0.1.1', '203.0.113.1')).toBe('10.0.1.1')
    expect(await countFree('192.0.2.71', (count) => `203.0.113.${count}`)).toBe(50)
    expect((await ask('192.0.2.72', 'unknown')).status).toBe(401)
  })

  it.each(['', 'unknown', '192.0.2.7,', ','.repeat(10_000), '192.0.2.7, proxy', 'x'.repeat(5_000)])(
    'that cannot be read is refused, and named: %#',
    async (field) => {
      const { status, text } = await ask(proxy, field, '/v1/health/ping')
      expect(status).toBe(400)
      expect(JSON.parse(text)).toMatchObject({ code: 'BadRequest', details: { field: 'X-Forwarded-For' } })
    },
  )

  it('that cannot be read counts for the proxy, and takes nothing from its clients', async () => {
    let last = 0
    for (let count = 0; count <= 60 && last !== 429; count += 1)
      last = (await ask('10.0.0.7', 'unknown', '/v1/users')).status
    expect(last).toBe(429)
    expect((await ask('10.0.0.7', '192.0.2.80', '/v1/users')).status).toBe(401)
  })

  it('given several times is read as one, the last one at the right', async () => {
    const { status } = await ask(proxy, ['192.0.2.90', 'unknown'])
    expect(status).toBe(400)
    expect((await ask(proxy, ['unknown', '192.0.2.90'])).status).toBe(401)
  })

  it('makes no client one on the loopback, which may read the metrics without a token', async () => {
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '192.0.2.7, 127.0.0.1'])
      expect((await ask(proxy, address, '/metrics')).status, address).toBe(401)
    expect((await ask('192.0.2.7', '127.0.0.1', '/metrics')).status).toBe(401)
    expect((await ask('127.0.0.1', undefined, '/metrics')).status).toBe(200)
  })

  it('of a proxy on the loopback opens the metrics to no client, also where the proxy forgets it', async () => {
    const local = await createTestPlatform({ flags: ['--api.trustedProxies=127.0.0.1'] })
    const status = async (forwarded?: string) => {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
      return (await local.app.inject({ method: 'GET', url: '/metrics', remoteAddress: '127.0.0.1', headers }))
        .statusCode
    }
    expect([await status(), await status('127.0.0.1'), await status('192.0.2.7')]).toEqual([401, 401, 401])
    await local.close()
  })
})

it.each(['0.0.0.0/0', 'proxy.example', '10.0.0.0/33', '10.0.0.1:443'])(
  'the setting refuses %s, and says what it accepts',
  async (value) => {
    const commandLine = configuration.parseCommandLine([`--api.trustedProxies=${value}`])
    await expect(
      configuration.loadConfig({ commandLine, environment: {}, defaultFile: '/nowhere/config.yaml' }),
    ).rejects.toThrow(/trustedProxies.*192\.0\.2\.0\/24/s)
  },
)
