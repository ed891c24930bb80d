import { createWindow } from '../base/window.ts'
import { createAllowance } from './allowance.ts'
import { begunEntry, createRefusalSum, type RefusalSum } from './refusal-sum.ts'
import type { Trail } from './trail.ts'

/**
 * Keeps refusals from filling the trail. A few get a record of their own; all others, from any address, are counted in
 * one record a minute. The first refusal that is counted already returns the uid of that record, so the record has an
 * intent on the disk from then on.
 */
export interface Flood {
  /** Whether one more refusal may have a record of its own. `true` uses up one such record; after `false`, call `count`. */
  admit(): boolean
  /**
   * Counts a refusal.
   * @param address the address, or the network that represents it
   * @returns the uid of the record that counts it
   */
  count(address: string, status: number): string
  /** Writes the sums. */
  flush(): void
}

export interface FloodOptions {
  /** The trail for the sums. */
  readonly trail: Pick<Trail, 'begin' | 'finish' | 'append' | 'newUid'>
  /** Names the callers in messages: `without a session`. */
  readonly callers: string
  /** Milliseconds. */
  readonly monotonic: () => number
  /** Called for each refusal that has a record of its own. */
  readonly onAdmitted?: (() => void) | undefined
}

const minuteMs = 60_000
const mostInMinute = 10

/**
 * What a lasting flood may add to the trail. Ten records and a sum a minute would be 5.8 million a year, eight times
 * the capacity of the default size. So there are ten records a minute for the first minutes and one in ten minutes in
 * the long run; and one sum a minute for the first hour, then one in a quarter of an hour. A test computes a year.
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
