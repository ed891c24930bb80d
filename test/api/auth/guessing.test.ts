import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestEdge, type ErrorReply, type TestEdgeOptions } from '../../support/test-edge.ts'

const opened: (() => unknown)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

async function setUp(options: TestEdgeOptions = {}) {
  const edge = await createTestEdge({ refusalDelayMs: 300, queueLength: 100, ...options })
  let isStopped = false
  const stop = async () => {
    if (!isStopped) await edge.stop()
    isStopped = true
  }
  opened.push(stop)
  const statuses = async (
    tries: readonly (readonly [name: string, remoteAddress: string])[],
    password = 'wrong',
  ) => {
    const found: number[] = []
    for (const [name, remoteAddress] of tries) {
      found.push((await edge.tryLogin(name, password, { remoteAddress })).statusCode)
    }
    return found
  }
  return { edge, stop, statuses }
}

const guard = { firstDelaySeconds: 3_600, lockAfterFailures: 3, addressLockAfterFailures: 4 }

describe('guessing', () => {
  it('guesses from all addresses of this host count for one client', async () => {
    const { statuses } = await setUp({ guard, ownAddresses: ['192.0.2.7', '2001:db8:1:2::7'] })
    const addresses = ['127.0.0.1', '127.9.8.7', '::ffff:127.1.1.1', '192.0.2.7', '2001:db8:1:2::7', '::1']
    expect(await statuses(addresses.map((address) => ['alice', address]))).toEqual([
      ...[401, 401, 401],
      ...[429, 429, 429],
    ])
    expect(await statuses([['bob', '192.0.2.8']])).toEqual([401])
  })

  it('guesses in an on-link /64 lock out neither a neighbour nor a user who has logged in from there', async () => {
    const { edge, statuses } = await setUp({ guard, ownAddresses: ['2001:db8:1:2::7'] })
    const near = (index: number) => `2001:db8:1:2::${(index + 0x100).toString(16)}`
    const password = edge.host.accounts.get('alice')?.password ?? ''
    expect(await statuses([['alice', near(1)]], password)).toEqual([200])
    // An attacker with every address but hers: eight times the four failures of an address.
    const tries = Array.from({ length: 40 }, (_, index) => statuses([[`user ${index}`, near(index + 10)]]))
    expect((await Promise.all(tries)).flat().filter((status) => status === 401)).toHaveLength(32)
    expect(await statuses([['alice', near(2)]], password)).toEqual([429])
    expect(await statuses([['alice', near(1)]], password)).toEqual([200])
    expect(await statuses([['alice', near(1)]])).toEqual([401])
  })

  it('failures and locks continue after a restart, with the same secret', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'edgehostd-guess-'))
    opened.push(() => rm(folder, { recursive: true }))
    const first = await setUp({ guard: { lockAfterFailures: 3 } })
    const { host, stateDirectory } = first.edge
    const wrong = ['alice', '192.0.2.1'] as const
    expect(await first.statuses([wrong, wrong, wrong, wrong])).toEqual([401, 401, 401, 429])
    // As a kill leaves it: nothing is closed or stopped before.
    await cp(stateDirectory, folder, { recursive: true })
    const second = await setUp({ guard: { lockAfterFailures: 3 }, stateDirectory: folder, host })
    const reply = await second.edge.tryLogin('alice', host.accounts.get('alice')?.password ?? '', {
      remoteAddress: '192.0.2.1',
    })
    expect(reply.json<ErrorReply>().code).toBe('TooManyAttempts')
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(890)
    expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(900)
    await second.stop()
  })
})
