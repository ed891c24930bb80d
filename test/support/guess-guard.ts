import { createSecretKey } from 'node:crypto'
import { createGuessGuard, type Attempt, type GuessGuardOptions } from '../../src/credentials/guess-guard.ts'
import { createGuessStore } from '../../src/credentials/guess-store.ts'
import { AppError } from '../../src/errors/app-error.ts'
import { openDatabase, type Database } from './open-database.ts'
import { clientOf, ownAddresses } from '../../src/base/client.ts'
import { captureLog } from './https-server.ts'
import { createTurningClock, type TurningClock } from './turning-clock.ts'

// One /64 is on a link of this host.
const own = ownAddresses(['192.0.2.250', '2001:db8:cafe:1::250', 'fe80::250'])

export interface GuardSetUp extends Partial<GuessGuardOptions> {
  /** State of a guard before this one. */
  readonly database?: Database
  readonly clock?: TurningClock
}

/** A guard with the limits of the default configuration, and a clock that a test turns. */
export function setUpGuard({ database: given, ...options }: GuardSetUp = {}) {
  const { log, lines } = captureLog()
  const database = given ?? openDatabase(':memory:', log)
  const clock = options.clock ?? createTurningClock()
  const known = new Set<string>()
  const guard = createGuessGuard({
    delayAfterFailures: 3,
    firstDelaySeconds: 1,
    lockAfterFailures: 5,
    lockMinutes: 15,
    addressLockAfterFailures: 20,
    userFailuresPerHour: 100,
    trackedKeys: 1_000,
    log,
    userKey: createSecretKey(Buffer.alloc(32, 7)),
    store: createGuessStore(database, options.trackedKeys ?? 1_000),
    isKnown: (user, { name }) => known.has(`${user} ${name}`),
    ...options,
    clock,
  })
  /** Seconds to wait, or the attempt. */
  const begin = (user: string, address: string): Attempt | number => {
    try {
      return guard.begin(user, clientOf(address, own))
    } catch (error) {
      if (error instanceof AppError && error.code === 'TooManyAttempts') return error.retryAfterSec ?? 0
      throw error
    }
  }
  const allowed = (user: string, address: string): Attempt => {
    const attempt = begin(user, address)
    if (typeof attempt === 'number') throw new Error(`${user} at ${address} has to wait ${attempt} s`)
    return attempt
  }
  const fail = (user: string, address: string) => allowed(user, address).fail()
  /** Fails as soon as it is allowed to try, until the pair is locked. */
  const lock = (user: string, address: string) => {
    for (const waitMs of [0, 0, 0, 1_000, 2_000]) {
      clock.turn(waitMs)
      fail(user, address)
    }
  }
  return { clock, known, begin, allowed, fail, lock, database, keep: () => guard.flush(), lines }
}
