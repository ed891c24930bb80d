import type { Clock } from '../../system/clock.ts'
import type { Stage, StepHistory } from '../plan.ts'
import { leftOfWaitMs } from './back-off.ts'
import type { StepRecord } from './step-store.ts'

/** What the loop remembers of the steps of a plan, beside what is stored of them. */
export interface StepMemory {
  /** Begins anew with what is stored. */
  meet(records: readonly StepRecord[]): void
  /** What is known of the steps of the first stage, which is gone through from its beginning when another one comes first. */
  of(stage: Stage | undefined, records: readonly StepRecord[]): StepHistory
  /** Milliseconds until a step may be tried; 0 or less for one that need not wait. */
  waitMs(key: string): number
  done(key: string): void
  failed(key: string, retryMs: number): void
  /**
   * Goes through the first stage again, all of whose steps were done.
   * @param key of its last step
   * @returns whether that was so too often, and is counted anew
   */
  again(key: string): boolean
}

const mostPasses = 3

/** Why a step has failed that `again` was called for too often. */
export const endedInVain = `it ended ${mostPasses} times, but its work is still to be done`

export function createStepMemory(clock: Clock): StepMemory {
  /** Monotonic time at which a failed step may be tried again, by key. */
  const dueAt = new Map<string, number>()
  /** Steps that were done since the first stage of the plan was gone through from its beginning. */
  const done = new Set<string>()
  /** How often the first stage was gone through without becoming empty. */
  let passes = 0
  let stuckAt = ''

  const waitMs = (key: string) => (dueAt.get(key) ?? 0) - clock.monotonic()
  return {
    waitMs,
    meet(records) {
      dueAt.clear()
      done.clear()
      passes = 0
      for (const { key, state, endedAt, retryMs } of records)
        if (state === 'failed')
          dueAt.set(key, clock.monotonic() + leftOfWaitMs(endedAt ?? 0, retryMs ?? 0, clock.now()))
    },
    of(stage, records) {
      const first = new Set(stage?.map(({ key }) => key))
      for (const key of done) if (!first.has(key)) done.delete(key)
      if (done.size === 0 && passes > 0 && !first.has(stuckAt)) passes = 0
      const failed = new Set(records.flatMap(({ key, failures }) => (failures > 0 ? [key] : [])))
      return {
        waitMs,
        isDone: (key) => done.has(key),
        hasFailed: (key) => failed.has(key),
      }
    },
    done(key) {
      dueAt.delete(key)
      done.add(key)
    },
    failed(key, retryMs) {
      dueAt.set(key, clock.monotonic() + retryMs)
      // What the steps before it did may be gone at the next try.
      done.clear()
    },
    again(key) {
      stuckAt = key
      done.clear()
      passes = (passes + 1) % mostPasses
      return passes === 0
    },
  }
}
