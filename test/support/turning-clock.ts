import type { Clock } from '../../src/system/clock.ts'

/** A clock that a test turns. */
export interface TurningClock extends Clock {
  /** Moves wall clock and monotonic clock, in milliseconds. */
  turn(ms: number): void
}

/** A clock that is constant between turns. */
export function createTurningClock(now = Date.now()): TurningClock {
  let passed = 0
  return { now: () => now + passed, monotonic: () => 5_000 + passed, turn: (ms) => void (passed += ms) }
}

/** A clock that runs with that of the machine, ahead of it by the turns: for code that also really waits. */
export function createRunningClock(): TurningClock {
  let ahead = 0
  return {
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
    turn: (ms) => void (ahead += ms),
  }
}

export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs
