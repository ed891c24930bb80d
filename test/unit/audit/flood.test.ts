import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAudit, type Audit } from '../../../src/audit/audit.ts'
import type { AuditedRequest } from '../../../src/api/audit-hook.ts'
import { createTrailStore } from '../../../src/audit/trail-store.ts'
import { createContinueTokens } from '../../../src/lists/continue-token.ts'
import { createTestTrail, entry, type TestTrail } from '../../support/test-trail.ts'
import { minuteMs } from '../../support/turning-clock.ts'

const settings = { retentionDays: 10, limitBytes: 1e9 }
let audit: Audit
let rig: TestTrail
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  rig = createTestTrail()
  audit = open()
})
afterEach(() => {
  audit.flush()
  rig.database.close()
  vi.useRealTimers()
})

const open = () =>
  createAudit({
    ...{ settings, read: async () => [], edgeHostId: 'edge-test', startMessage: 'Start' },
    ...{ listTokens: createContinueTokens(Buffer.alloc(32, 1)), ...rig, log: rig.captured.log },
  })

interface Told {
  readonly address?: string
  readonly status?: number
  readonly hasSession?: boolean
  readonly begun?: string
}

/** Checks the budget once, then records, like the edge. */
function ended({ address = '192.0.2.1', status = 401, hasSession = false, begun }: Told = {}) {
  const isCounted = status >= 400 && !audit.requests.admit(hasSession)
  return audit.requests.end({ ...request, address, hasSession, isCounted }, status, begun)
}
const request: AuditedRequest = {
  ...{
    actorType: 'user',
    actor: '',
    role: '',
    address: '',
    action: 'activity',
    kind: 'session',
    resourceName: '',
  },
  ...{ resourceUid: '', message: 'Log in', requestId: 'r', hasSession: false, isCounted: false },
}

const times = (count: number, told: (index: number) => Told = () => ({})) =>
  Promise.all(Array.from({ length: count }, (_each, index) => ended(told(index))))
const records = () => createTrailStore(rig.database).slice(1, 5_000)
const intents = () => createTrailStore(rig.database).intents()
const sums = () => records().filter(({ message }) => message.includes('more requests'))

/** Timers and clock go together. */
function pass(ms: number): void {
  rig.clock.turn(ms)
  vi.advanceTimersByTime(ms)
}

describe('a flood of refusals without a session', () => {
  it('a flood of refusals is ten records and one that counts the rest, whose uid they all got', async () => {
    const uids = await times(50, (index) => ({ status: index < 40 ? 401 : 429 }))
    pass(minuteMs)
    expect(records()).toHaveLength(11)
    const sum = records().at(-1)
    expect(sum).toMatchObject({ address: '192.0.2.1', outcome: 'refused', status: null })
    expect(sum?.message).toBe(
      '40 more requests without a session were refused within a minute: 30 with 401, 10 with 429, all from 192.0.2.1',
    )
    expect(new Set(uids.slice(10))).toEqual(new Set([sum?.uid]))
    expect(uids.slice(0, 10)).toEqual(
      records()
        .slice(0, 10)
        .map(({ uid }) => uid),
    )
  })

  it('a flood has one sum for all addresses, which names the most frequent ones', async () => {
    await times(10)
    await times(9, (index) => ({ address: ['192.0.2.7', '192.0.2.8', '192.0.2.8'][index % 3]! }))
    await times(20, () => ({ address: '2001:db8::1' }))
    await times(20, () => ({ address: '2001:db8::2' }))
    await times(1, () => ({ address: '192.0.2.9' }))
    pass(minuteMs)
    expect(records()).toHaveLength(11)
    expect(records().at(-1)).toMatchObject({
      address: '',
      message:
        '50 more requests without a session were refused within a minute: 50 with 401, ' +
        'from 4 addresses, most from 2001:db8::/64 (40), 192.0.2.8 (6), 192.0.2.7 (3)',
    })
  })

  it('the sum of a flood says that it came from more addresses than are kept in memory', async () => {
    await times(12_010, (index) => ({ address: `10.${index >> 16}.${(index >> 8) & 0xff}.${index & 0xff}` }))
    await times(3, () => ({ address: '10.0.0.99' }))
    pass(minuteMs)
    expect(sums()[0]?.message).toMatch(
      /^12003 more requests .*, from more than 10000 addresses, most from 10\.0\.0\.99 \(4\), /,
    )
  })

  it('a flood causes at most ten records in any sixty seconds', async () => {
    for (let second = 0; second < 300; second += 1) {
      await times(3)
      pass(1_000)
    }
    const singles = records().filter(({ message }) => message === 'Log in')
    expect(singles).toHaveLength(50)
    for (const [index, { at }] of singles.entries())
      if (index >= 10) expect(at - singles[index - 10]!.at).toBeGreaterThanOrEqual(minuteMs)
  })

  it('a flood of hours has fewer single records and fewer sums', async () => {
    for (let minute = 0; minute < 6 * 60; minute += 1) {
      await times(20)
      pass(minuteMs)
    }
    expect(records().length - sums().length).toBeLessThan(300)
    expect(sums().length).toBeLessThan(90)
    const all = sums().map(({ message }) => Number(/^\d+/.exec(message)?.[0]))
    expect(all.reduce((one, other) => one + other, 0) + records().length - sums().length).toBeGreaterThan(
      6 * 60 * 20 - 20 * 15,
    )
    expect(sums().at(-1)?.message).toMatch(/ were refused within 1[45] minutes: /)
  })

  it('a flood hides neither successes nor refusals of users with a session', async () => {
    await times(200)
    await ended({ status: 200 })
    expect(records().at(-1)).toMatchObject({ outcome: 'success' })
    await ended({ hasSession: true, address: '192.0.2.9' })
    expect(records().at(-1)).toMatchObject({ address: '192.0.2.9', outcome: 'refused' })
  })

  it('a counted refusal removes its intent', async () => {
    await times(10)
    const begun = audit.requests.begin(request)!
    const uid = await ended({ begun })
    expect(uid).not.toBe(begun)
    expect(intents().map((each) => each.uid)).toEqual([uid])
    pass(minuteMs)
    expect(records().map((each) => each.uid)).not.toContain(begun)
    expect(intents()).toEqual([])
    open()
    expect(records()).toHaveLength(11)
  })

  it('a flood that was cut short by a kill has its sum after the next start', async () => {
    const uids = await times(50)
    open()
    expect(records()).toHaveLength(11)
    expect(records().at(-1)).toMatchObject({
      uid: uids[49],
      outcome: 'unknown',
      message: 'an unknown number of more requests without a session were refused',
    })
  })

  it('the sum of a flood is written after a minute, and never throws', async () => {
    await times(50)
    rig.open().trail.append(entry('foreign'))
    expect(() => pass(minuteMs)).not.toThrow()
    await ended({ status: 200 })
    expect(sums().at(-1)?.message).toContain('40 more requests')
  })
})

it('a flood of users with a session is bounded in the same way, with its own budget', async () => {
  await times(15, () => ({ hasSession: true }))
  await times(3)
  pass(minuteMs)
  expect(records()).toHaveLength(14)
  expect(sums()[0]?.message).toContain('5 more requests of logged-in users were refused within a minute')
})
