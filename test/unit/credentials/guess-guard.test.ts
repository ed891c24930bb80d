import { describe, expect, it } from 'vitest'
import { createFailureLog, type Attempt } from '../../../src/credentials/guess-guard.ts'
import { createLevels, touch } from '../../../src/credentials/guess-levels.ts'
import { setUpGuard as setUp } from '../../support/guess-guard.ts'
import { hourMs, minuteMs } from '../../support/turning-clock.ts'
import { noise } from '../../support/random.ts'

describe('the pair of user and address', () => {
  it('a pair may fail three times without a wait, then waits 1 s and 2 s, then is locked for 15 minutes', () => {
    const { clock, begin, fail } = setUp()
    for (const expected of [0, 0, 1, 2]) {
      fail('bob', '192.0.2.1')
      if (expected > 0) {
        expect(begin('bob', '192.0.2.1')).toBe(expected)
        clock.turn(expected * 1_000 - 1)
        expect(begin('bob', '192.0.2.1')).toBe(1)
        clock.turn(1)
      }
    }
    fail('bob', '192.0.2.1')
    expect(begin('bob', '192.0.2.1')).toBe(15 * 60)
  })

  it('a refusal names the seconds that are left, rounded up and never 0', () => {
    const { clock, begin, lock } = setUp()
    lock('bob', '192.0.2.1')
    clock.turn(15 * minuteMs - 1)
    expect(begin('bob', '192.0.2.1')).toBe(1)
  })

  it('a pair may try again when its lock ends, with no failures counted', () => {
    const { clock, lock, fail, allowed } = setUp()
    lock('bob', '192.0.2.1')
    clock.turn(15 * minuteMs)
    fail('bob', '192.0.2.1')
    fail('bob', '192.0.2.1')
    allowed('bob', '192.0.2.1').cancel()
  })

  it('tries during the lock do not make it longer', () => {
    const { clock, lock, begin, allowed } = setUp()
    lock('bob', '192.0.2.1')
    for (let minute = 1; minute < 15; minute += 1) {
      clock.turn(minuteMs)
      expect(begin('bob', '192.0.2.1')).toBe((15 - minute) * 60)
    }
    clock.turn(minuteMs)
    allowed('bob', '192.0.2.1').cancel()
  })

  it('the wait doubles with each failure up to the length of a lock, where the lock is far away', () => {
    const { clock, begin, fail } = setUp({
      lockAfterFailures: 100,
      addressLockAfterFailures: 1_000,
      lockMinutes: 1,
    })
    const waits: number[] = []
    for (let count = 0; count < 11; count += 1) {
      fail('bob', '192.0.2.1')
      const wait = begin('bob', '192.0.2.1')
      if (typeof wait !== 'number') {
        wait.cancel()
        continue
      }
      waits.push(wait)
      clock.turn(wait * 1_000)
      if (wait === 60) break
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60])
  })

  it('a pair is the same whatever the case of the name', () => {
    const { begin, fail } = setUp()
    for (const name of ['bob', 'BOB', 'Bob']) fail(name, '192.0.2.1')
    expect(begin('bOB', '192.0.2.1')).toBe(1)
  })

  it('failures of a name without an account count', () => {
    const { begin, lock } = setUp()
    lock('no such user', '192.0.2.1')
    expect(begin('no such user', '192.0.2.1')).toBe(900)
  })

  it('two pairs are not confused', () => {
    const { allowed, lock } = setUp()
    lock('bob', '192.0.2.1')
    allowed('bob', '192.0.2.2').cancel()
    allowed('alice', '192.0.2.1').cancel()
  })

  it('a pair is removed after 15 minutes without a failure', () => {
    const { clock, begin, fail } = setUp()
    for (let count = 0; count < 4; count += 1) {
      fail('bob', '192.0.2.1')
      clock.turn(2_000)
    }
    clock.turn(15 * minuteMs)
    for (let count = 0; count < 3; count += 1) fail('bob', '192.0.2.1')
    expect(begin('bob', '192.0.2.1')).toBe(1)
  })
})

describe('a success', () => {
  it('a success resets its own pair', () => {
    const { begin, fail, allowed, clock } = setUp()
    for (let count = 0; count < 3; count += 1) fail('bob', '192.0.2.1')
    clock.turn(1_000)
    allowed('bob', '192.0.2.1').succeed()
    for (let count = 0; count < 2; count += 1) fail('bob', '192.0.2.1')
    const attempt = begin('bob', '192.0.2.1')
    expect(attempt).not.toBeTypeOf('number')
  })

  it('a success does not change the counts of its address or of other users', () => {
    const { begin, fail, allowed } = setUp({ addressLockAfterFailures: 6 })
    for (let count = 0; count < 3; count += 1) fail('bob', '192.0.2.1')
    for (let count = 0; count < 2; count += 1) fail('carol', '192.0.2.1')
    allowed('alice', '192.0.2.1').succeed()
    expect(begin('bob', '192.0.2.1')).toBe(1)
    fail('carol', '192.0.2.1')
    expect(begin('alice', '192.0.2.1')).toBe(900)
  })
})

describe('an address', () => {
  it('an address is locked after 20 failures of whatever users', () => {
    const { begin, fail, clock, allowed } = setUp()
    for (let count = 0; count < 20; count += 1) fail(`user ${count}`, '192.0.2.1')
    expect(begin('another', '192.0.2.1')).toBe(900)
    allowed('another', '192.0.2.2').cancel()
    clock.turn(15 * minuteMs)
    allowed('another', '192.0.2.1').cancel()
  })

  it('an IPv6 /64 counts as one address', () => {
    const { begin, fail, allowed } = setUp()
    for (let count = 1; count <= 20; count += 1) fail(`user ${count}`, `2001:db8:0:1::${count.toString(16)}`)
    expect(begin('another', '2001:db8:0:1:ffff:ffff:ffff:ffff')).toBe(900)
    allowed('another', '2001:db8:0:2::1').cancel()
  })

  it('an IPv4 address is the same with and without its v4-mapped form', () => {
    const { begin, fail } = setUp()
    for (let count = 0; count < 20; count += 1) fail(`user ${count}`, '::ffff:192.0.2.1')
    expect(begin('another', '192.0.2.1')).toBe(900)
  })
})

describe('a user over all addresses', () => {
  function afterHundred() {
    const parts = setUp()
    for (let count = 0; count < 100; count += 1) parts.fail('bob', `198.51.100.${count}`)
    return parts
  }

  it('a user is closed to unknown addresses after 100 failures in an hour', () => {
    const { begin, allowed } = afterHundred()
    expect(begin('bob', '203.0.113.1')).toBe(3_600)
    expect(begin('BOB', '203.0.113.1')).toBe(3_600)
    allowed('alice', '203.0.113.1').cancel()
  })

  it.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])(
    'a closed user is open to loopback: %s',
    (address) => {
      const { allowed } = afterHundred()
      allowed('bob', address).cancel()
    },
  )

  it('a closed user is open to an address that has succeeded before', () => {
    const { allowed, known, begin } = afterHundred()
    known.add('bob 203.0.113.1')
    allowed('bob', '203.0.113.1').cancel()
    expect(begin('bob', '203.0.113.2')).toBe(3_600)
  })

  it('a known address of a closed user has the limits of its pair', () => {
    const { lock, known, begin } = afterHundred()
    known.add('bob 203.0.113.1')
    lock('bob', '203.0.113.1')
    expect(begin('bob', '203.0.113.1')).toBe(900)
  })

  it('a closed user is open to all when the failures are an hour old', () => {
    const { allowed, clock } = afterHundred()
    clock.turn(hourMs)
    allowed('bob', '203.0.113.1').cancel()
  })

  it('concurrent attempts cannot try a user more than 100 times', () => {
    const { begin } = setUp()
    const attempts: Attempt[] = []
    for (let count = 0; count < 200; count += 1) {
      const attempt = begin('bob', `198.51.100.${count}`)
      if (typeof attempt !== 'number') attempts.push(attempt)
    }
    expect(attempts).toHaveLength(100)
    expect(begin('bob', '203.0.113.1'), 'attempts end in seconds, so the wait is not an hour').toBe(1)
    for (const attempt of attempts) attempt.cancel()
    expect(begin('bob', '203.0.113.1')).not.toBeTypeOf('number')
  })

  it('failures of a user are still counted after a flood of other names', () => {
    const { fail, begin } = setUp({ trackedKeys: 50 })
    for (let count = 0; count < 100; count += 1) fail('bob', `198.51.100.${count}`)
    for (let count = 0; count < 500; count += 1) fail(`user ${count}`, `10.0.${count >> 8}.${count & 255}`)
    expect(begin('bob', '203.0.113.1')).toBe(3_600)
  })
})

describe('concurrent attempts', () => {
  it('concurrent attempts of one pair are at most three, and its failures never pass the lock', () => {
    const { begin, clock } = setUp()
    let tried = 0
    for (let round = 0; round < 10; round += 1) {
      const attempts = Array.from({ length: 50 }, () => begin('bob', '192.0.2.1')).filter(
        (each) => typeof each !== 'number',
      )
      tried += attempts.length
      for (const attempt of attempts) attempt.fail()
      clock.turn(2_000)
    }
    expect(tried).toBe(5)
  })

  it('attempts of a pair are one at a time once it has to wait', () => {
    const { begin, fail, clock } = setUp()
    for (let count = 0; count < 3; count += 1) fail('bob', '192.0.2.1')
    clock.turn(1_000)
    expect(begin('bob', '192.0.2.1')).not.toBeTypeOf('number')
    expect(begin('bob', '192.0.2.1')).toBe(1)
  })

  it('concurrent attempts of one address are at most twenty', () => {
    const { begin } = setUp()
    const results = Array.from({ length: 100 }, (_, count) => begin(`user ${count}`, '192.0.2.1'))
    expect(results.filter((each) => typeof each !== 'number')).toHaveLength(20)
    for (const attempt of results) if (typeof attempt !== 'number') attempt.fail()
    expect(begin('another', '192.0.2.1')).toBe(900)
  })

  it('attempts that PAM did not answer leave no counter', () => {
    const { allowed } = setUp()
    for (let count = 0; count < 50; count += 1) allowed('bob', '192.0.2.1').cancel()
  })

  it('concurrent attempts keep their count when the pair succeeds meanwhile', () => {
    const { allowed, begin, fail } = setUp()
    const [slow, good] = [allowed('bob', '192.0.2.1'), allowed('bob', '192.0.2.1')]
    good.succeed()
    slow.fail()
    fail('bob', '192.0.2.1')
    fail('bob', '192.0.2.1')
    expect(begin('bob', '192.0.2.1')).toBe(1)
  })
})

describe('memory', () => {
  /** One level of so many counters: 5 failures lock for a minute. */
  function openLevel(trackedKeys: number) {
    const limits = { delayAfterFailures: 5, firstDelaySeconds: 1, addressLockAfterFailures: 20 }
    const { pair: level } = createLevels({ ...limits, lockAfterFailures: 5, lockMinutes: 1, trackedKeys })
    const fail = (key: string, now: number, failures = 1) => {
      const counter = touch({ level, key }, now)
      for (let count = 0; count < failures; count += 1) level.fail(counter, now)
    }
    return { level, counters: level.counters, fail }
  }

  it('the number of counters is bounded, and the one with the oldest failure is removed first', () => {
    const { counters, fail } = openLevel(3)
    for (const [time, key] of ['a', 'b', 'c', 'a', 'd'].entries()) fail(key, time)
    expect(counters.size).toBe(3)
    expect(counters.get('b')).toBeUndefined()
    expect(counters.get('a')?.failures).toBe(2)
  })

  it('two keys that fail in turn are counted while all counters have more failures', () => {
    const { counters, fail } = openLevel(10)
    for (let count = 0; count < 10; count += 1) fail(`key ${count}`, 0, 4)
    for (let time = 1; time < 5; time += 1) for (const key of ['one', 'other']) fail(key, time)
    expect([counters.get('one')?.failures, counters.get('other')?.failures]).toEqual([4, 4])
  })

  it('a blocked counter is removed only when all are blocked', () => {
    const { counters, fail } = openLevel(2)
    for (const [time, key] of ['first', 'second'].entries()) fail(key, time, 5)
    fail('third', 9)
    expect(counters.get('first')).toBeUndefined()
    for (let count = 0; count < 10; count += 1) fail(`key ${count}`, 9)
    expect(counters.get('second')).toBeDefined()
    fail('after its end', 60_001)
    expect(counters.get('second')).toBeUndefined()
    expect(counters.size).toBe(2)
  })

  it('a counter in use is never removed', () => {
    const { level, counters, fail } = openLevel(2)
    touch({ level, key: 'busy' }, 0).pending = 1
    for (let count = 0; count < 10; count += 1) fail(`key ${count}`, 0)
    expect(counters.get('busy')?.pending).toBe(1)
    expect(counters.size).toBe(2)
  })

  it('no counter grows with the length of a name', () => {
    const { fail } = setUp({ trackedKeys: 100, addressLockAfterFailures: 1_000 })
    const before = process.memoryUsage().heapUsed
    // As long as a body may be, and all different.
    for (let count = 0; count < 100; count += 1)
      fail(noise(2 ** 19).toString('base64'), `192.0.2.${count % 50}`)
    // Garbage that is not yet collected may still count.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(40 * 2 ** 20)
  })

  const failureLog = () => {
    const log = createFailureLog({ maximumKeys: 2, perKey: 3, windowMs: 1_000 })
    const fail = (key: string, at: number) => {
      log.begin(key, at)
      log.end(key, at)
    }
    return { log, fail }
  }

  it('the number of failures kept for a user is bounded', () => {
    const { log, fail } = failureLog()
    for (let time = 0; time < 10; time += 1) fail('bob', time)
    expect(log.count('bob', 10)).toBe(3)
    expect(log.nextFreeAt('bob', 10)).toBe(1_007)
    expect(log.count('bob', 1_008)).toBe(1)
    expect(log.count('bob', 1_009)).toBe(0)
  })

  it('the number of users kept is bounded, and those with the fewest failures are removed first', () => {
    const { log, fail } = failureLog()
    for (const [time, name] of ['a', 'a', 'b', 'c', 'd'].entries()) fail(name, time)
    expect(['a', 'b', 'c', 'd'].map((name) => log.count(name, 5))).toEqual([2, 0, 0, 1])
  })

  it('users whose failures are older than the window are removed first, however many they were', () => {
    const { log, fail } = failureLog()
    for (const name of ['old', 'older']) for (let count = 0; count < 3; count += 1) fail(name, 0)
    fail('a', 2_000)
    fail('b', 2_001)
    expect(['a', 'b'].map((name) => log.count(name, 2_002))).toEqual([1, 1])
  })

  it('nothing is kept for a user who did not fail', () => {
    const { log } = failureLog()
    log.begin('bob', 0)
    expect(log.count('bob', 0)).toBe(1)
    log.end('bob', undefined)
    expect(log.count('bob', 0)).toBe(0)
  })
})
