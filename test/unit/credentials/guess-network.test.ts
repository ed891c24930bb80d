import { afterEach, describe, expect, it } from 'vitest'
import { createLoginHistory } from '../../../src/auth/login.ts'
import type { Client } from '../../../src/base/client.ts'
import { openDatabase } from '../../support/open-database.ts'
import { setUpGuard } from '../../support/guess-guard.ts'
import { captureLog } from '../../support/https-server.ts'
import { minuteMs } from '../../support/turning-clock.ts'

/** An address in an on-link /64 of this host. */
const near = (index: number) => `2001:db8:cafe:1::${(index + 0x1000).toString(16)}`

describe('a /64 on a link of this host', () => {
  it('each address and pair of an on-link /64 has a lock of its own', () => {
    const { lock, fail, begin, allowed } = setUpGuard()
    lock('bob', near(1))
    expect(begin('bob', near(1))).toBe(900)
    allowed('bob', near(2)).cancel()
    for (let count = 0; count < 20; count += 1) fail(`user ${count}`, near(3))
    expect(begin('another', near(3))).toBe(900)
    allowed('another', near(4)).cancel()
  })

  it.each([
    ['a /64', near],
    ['fe80::/10', (index: number) => `fe${(0x80 + (index % 64)).toString(16)}::${index.toString(16)}`],
  ])(
    'an on-link network is locked as a whole after eight times the failures of an address: %s',
    (_what, address) => {
      const { fail, begin, allowed, clock } = setUpGuard()
      for (let count = 0; count < 160; count += 1) fail(`user ${count}`, address(count))
      expect(begin('another', address(1_000))).toBe(900)
      allowed('another', '2001:db8:cafe:2::1').cancel()
      clock.turn(15 * minuteMs)
      allowed('another', address(1_000)).cancel()
    },
  )

  it('one user is slowed and locked in an on-link /64 after eight times the failures of a pair', () => {
    const { begin, clock } = setUpGuard()
    const waits: number[] = []
    for (let failures = 0; failures < 40;) {
      const attempt = begin('bob', near(failures))
      if (typeof attempt === 'number') {
        waits.push(attempt)
        clock.turn(attempt * 1_000)
      } else {
        attempt.fail()
        failures += 1
      }
    }
    // After the 24th to 31st failure, and after the 32nd to 39th.
    expect(waits).toEqual([...Array<number>(8).fill(1), ...Array<number>(8).fill(2)])
    expect(begin('bob', near(5_000))).toBe(900)
  })

  it('a pair that has succeeded before may try while its /64 and the user are locked', () => {
    const { fail, known, begin, allowed } = setUpGuard({ userFailuresPerHour: 20 })
    known.add(`bob ${near(1)}`)
    for (let count = 0; count < 20; count += 1) fail('bob', near(100 + count))
    for (let count = 20; count < 160; count += 1) fail(`user ${count}`, near(100 + count))
    expect(begin('bob', near(2))).toBe(900)
    expect(begin('alice', near(1))).toBe(900)
    allowed('bob', near(1)).cancel()
  })

  it('a pair that has succeeded before is held to its own lock', () => {
    const { lock, known, begin } = setUpGuard()
    known.add(`bob ${near(1)}`)
    lock('bob', near(1))
    expect(begin('bob', near(1))).toBe(900)
  })

  it('an attacker with all addresses of a /64 gets no more tries, however few counters there are', () => {
    const { begin } = setUpGuard({ trackedKeys: 20 })
    let tries = 0
    for (let count = 0; count < 3_000; count += 1) {
      const attempt = begin(`user ${count % 1_000}`, near(count))
      if (typeof attempt === 'number') continue
      tries += 1
      attempt.fail()
    }
    expect(tries).toBe(160)
  })

  it('concurrent tries in an on-link /64 count as failures', () => {
    const { begin } = setUpGuard()
    const tries = Array.from({ length: 500 }, (_, count) => begin(`user ${count}`, near(count)))
    expect(tries.filter((each) => typeof each !== 'number')).toHaveLength(160)
  })
})

describe('this host', () => {
  it.each([
    ['loopback', (index: number) => `127.0.${index}.1`],
    ['mapped loopback', (index: number) => `::ffff:127.0.${index}.1`],
    [
      'all that it has',
      (index: number) => ['127.0.0.1', '::1', '192.0.2.250', '2001:db8:cafe:1::250'][index % 4]!,
    ],
  ])('this host is one client: %s', (_what, address) => {
    const { begin } = setUpGuard()
    let tries = 0
    for (let count = 0; count < 200; count += 1) {
      const attempt = begin('bob', address(count))
      if (typeof attempt === 'number') continue
      tries += 1
      attempt.fail()
    }
    expect(tries).toBe(3)
    for (let count = 0; count < 30; count += 1) {
      const attempt = begin(`user ${count}`, address(count))
      if (typeof attempt !== 'number') attempt.fail()
    }
    expect(begin('another', address(7))).toBe(900)
  })

  it('locks of this host do not apply to the local socket, which only root can open', () => {
    const { begin, fail } = setUpGuard()
    for (let count = 0; count < 20; count += 1) fail(`user ${count}`, '127.0.0.1')
    expect(begin('another', 'local')).not.toBeTypeOf('number')
  })
})

describe('the record of earlier logins', () => {
  const open: (() => void)[] = []
  afterEach(() => open.splice(0).forEach((close) => close()))
  const setUp = () => {
    const database = openDatabase(':memory:', captureLog().log)
    open.push(() => database.close())
    return createLoginHistory(database)
  }
  const client = (name: string, network?: string): Client => ({ name, network })
  const network = '2001:db8:1:2::/64'

  it('an earlier login in an on-link /64 is recorded by its address', () => {
    const history = setUp()
    history.record('Bob', client('2001:db8:1:2::5', network), 1)
    expect(history.isKnown('bob', client('2001:db8:1:2::5', network))).toBe(true)
    expect(history.isKnown('bob', client('2001:db8:1:2::6', network))).toBe(false)
    expect(history.isKnown('alice', client('2001:db8:1:2::5', network))).toBe(false)
    expect(history.isKnownClient(client('2001:db8:1:2::5', network))).toBe(true)
    expect(history.isKnownClient(client('2001:db8:1:2::6', network))).toBe(false)
  })

  it('an earlier login is recorded by its /64 until an address in it is known', () => {
    const history = setUp()
    history.record('bob', client(network), 1)
    expect(history.isKnown('bob', client('2001:db8:1:2::5', network))).toBe(true)
    history.record('bob', client('2001:db8:1:2::6', network), 2)
    expect(history.isKnown('bob', client('2001:db8:1:2::5', network))).toBe(false)
    expect(history.isKnown('bob', client('2001:db8:1:2::6', network))).toBe(true)
  })
})
