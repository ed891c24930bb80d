import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAudit, type Audit } from '../../src/audit/audit.ts'
import { createTrailStore } from '../../src/audit/trail-store.ts'
import { createTestTrail, entry, type TestTrail } from '../support/test-trail.ts'

describe('a flood of refusals', () => {
  const settings = { retentionDays: 10, limitBytes: 1e9 }
  let audit: Audit
  let rig: TestTrail
  beforeEach(() => {
    rig = createTestTrail()
    const read = async () => []
    audit = createAudit({ settings, read, ...rig, log: rig.captured.log })
  })
  afterEach(() => {
    audit.stop()
    rig.database.close()
  })
  const refused = (address: string, status = 401, isCountable = true) =>
    audit.requests.end(
      {
        ...{ actor: 'mallory', role: '', address, action: 'activity', kind: 'session', resourceName: '' },
        ...{ resourceUid: '', message: 'Log in', requestId: 'r', isCountable },
      },
      status,
      undefined,
    )
  const records = () => createTrailStore(rig.database).slice(1, 1_000)

  it('is thirty records and one that counts the rest, whose uid they all got', async () => {
    const all = Array.from({ length: 50 }, (_each, index) => refused('192.0.2.1', index < 40 ? 401 : 429))
    const uids = await Promise.all(all)
    audit.stop()
    expect(records()).toHaveLength(31)
    const sum = records().at(-1)
    expect(sum?.message).toBe(
      '20 more requests from 192.0.2.1 were refused within a minute: 10 with 401, 10 with 429',
    )
    expect(new Set(uids.slice(30))).toEqual(new Set([sum?.uid]))
    expect(uids.slice(0, 30)).toEqual(
      records()
        .slice(0, 30)
        .map(({ uid }) => uid),
    )
  })

  it('from one /64 counts as one', () => {
    for (let host = 0; host < 50; host += 1) void refused(`2001:db8::${host.toString(16)}`)
    audit.stop()
    expect(records()).toHaveLength(31)
  })

  it('from many addresses is bounded, in records and in memory', () => {
    for (let host = 0; host < 5_000; host += 1) void refused(`10.0.${host >> 8}.${host & 0xff}`)
    audit.stop()
    expect(records()).toHaveLength(121)
    expect(records().at(-1)?.message).toContain('4880 more requests from many other addresses')
  })

  it('does not hide an attempt to log in', async () => {
    for (let count = 0; count < 200; count += 1) await refused(`192.0.2.${count}`, 404)
    const before = records().length
    const uids = await Promise.all(Array.from({ length: 50 }, () => refused('192.0.2.1', 401, false)))
    expect(
      records()
        .slice(before)
        .map(({ uid, status }) => [uid, status]),
    ).toEqual(uids.map((uid) => [uid, 401]))
  })

  it('that was cut short by a kill has its record after the next start', async () => {
    const uids = await Promise.all(Array.from({ length: 50 }, () => refused('192.0.2.1')))
    createAudit({ settings, read: async () => [], ...rig, log: rig.captured.log })
    expect(records()).toHaveLength(31)
    expect(records().at(-1)).toMatchObject({
      uid: uids[49],
      outcome: 'unknown',
      message: 'an unknown number of more requests from 192.0.2.1 were refused within a minute',
    })
  })

  it('ends by itself after a minute, and never with an exception', async () => {
    vi.useFakeTimers()
    try {
      for (let count = 0; count < 50; count += 1) void refused('192.0.2.1')
      rig.open().trail.append(entry('foreign'))
      expect(() => vi.advanceTimersByTime(60_000)).not.toThrow()
      await refused('192.0.2.1', 200)
      expect(records().map(({ message }) => message)).toContain(
        '20 more requests from 192.0.2.1 were refused within a minute: 20 with 401',
      )
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not hide what went well', async () => {
    for (let count = 0; count < 200; count += 1) void refused('192.0.2.1')
    await refused('192.0.2.1', 200)
    expect(records().at(-1)).toMatchObject({ outcome: 'success' })
  })
})
