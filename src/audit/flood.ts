import { createWindow } from '../base/window.ts'
import { createAllowance } from './allowance.ts'
import { begunEntry, createRefusalSum, type RefusalSum } from './refusal-sum.ts'
import type { Trail } from './trail.ts'

/**
 * Keeps refusals from filling the trail. A few have a record of their own; all others, from whatever address, are
 * counted in one record a minute. The uid of that record is given out with the first refusal it counts, so it is an
 * intent on the disk from then on.
 */
export interface Flood {
  /** Whether one more refusal may have a record of its own, which it then has; else it is to be counted. */
  admit(): boolean
  /**
   * Counts a refusal.
   * @param address or the network that stands for it
   * @returns the uid of the record that counts it
   */
  count(address: string, status: number): string
  /** Writes what was counted. */
  flush(): void
}

export interface FloodOptions {
  /** Where the sums go. */
  readonly trail: Pick<Trail, 'begin' | 'finish' | 'append' | 'newUid'>
  /** Whose refusals these are, for people: `without a session`. */
  readonly callers: string
  /** Milliseconds. */
  readonly monotonic: () => number
  /** Told of each that has a record of its own. */
  readonly onAdmitted?: (() => void) | undefined
}

const minuteMs = 60_000
const mostInMinute = 10

/**
 * What a flood that lasts may add to the trail. Ten records and a sum a minute would be 5.8 million a year, eight times
 * what the default size holds: so there are ten a minute for the first minutes, and in the long run one in ten minutes;
 * and a sum a minute for the first hour, from then on one in a quarter of an hour. A test computes a year.
 */
const single = { atOnce: 240, everyMs: 10 * minuteMs }
const sums = { atOnce: 60, everyMs: 15 * minuteMs }

interface Counting {
  readonly uid: string
  readonly isIntent: boolean
  readonly sum: RefusalSum
  readonly minutes: number
  readonly timer: NodeJS.Timeout
}

export function createFlood({ trail, callers, monotonic, onAdmitted }: FloodOptions): Flood {
  const window = createWindow(minuteMs, monotonic)
  const singleAllowance = createAllowance(single.atOnce, single.everyMs, monotonic)
  const sumAllowance = createAllowance(sums.atOnce, sums.everyMs, monotonic)
  let counting: Counting | undefined

  function begin(): Counting {
    const noted = trail.begin(begunEntry(callers))
    const minutes = Math.max(1, Math.ceil(sumAllowance.waitMs() / minuteMs))
    sumAllowance.take()
    return {
      ...{ uid: noted ?? trail.newUid(), isIntent: noted !== undefined, minutes },
      sum: createRefusalSum(callers),
      timer: setTimeout(flush, minutes * minuteMs).unref(),
    }
  }

  function flush(): void {
    if (!counting) return
    const { uid, isIntent, sum, minutes, timer } = counting
    clearTimeout(timer)
    counting = undefined
    if (isIntent) trail.finish(uid, sum.entry(minutes))
    else trail.append(sum.entry(minutes), uid)
  }

  return {
    admit() {
      if (window.count() >= mostInMinute || singleAllowance.waitMs() > 0) return false
      window.add()
      singleAllowance.take()
      onAdmitted?.()
      return true
    },
    count(address, status) {
      counting ??= begin()
      counting.sum.add(address, status)
      return counting.uid
    },
    flush,
  }
}
