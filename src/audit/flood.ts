import type { AuditEntry } from './record.ts'
import { createWindow } from '../base/tally.ts'
import type { Trail } from './trail.ts'

/** A rate limit with a burst. */
interface Allowance {
  /** Milliseconds until the next one is allowed; 0 if it is allowed now. */
  waitMs(): number
  /** Counts one. */
  take(): void
}

/**
 * Creates the limit.
 * @param atOnce size of the burst
 * @param everyMs average interval in the long run
 * @param monotonic milliseconds
 */
function createAllowance(atOnce: number, everyMs: number, monotonic: () => number): Allowance {
  // When the full burst is available again.
  let fullAt = 0
  return {
    waitMs: () => Math.max(0, fullAt - (atOnce - 1) * everyMs - monotonic()),
    take() {
      fullAt = Math.max(fullAt, monotonic()) + everyMs
    },
  }
}

/** Sums refusals for one record, in bounded memory, whatever their number of addresses. */
interface RefusalSum {
  add(address: string, status: number): void
  /** @param minutes length of the interval */
  entry(minutes: number): AuditEntry
}

const mostAddresses = 10_000
const namedAddresses = 3

/** @param callers names the callers in messages */
export function createRefusalSum(callers: string): RefusalSum {
  const statuses = new Map<number, number>()
  const addresses = new Map<string, number>()
  let count = 0
  let untracked = 0

  function where(): string {
    const all = [...addresses].sort(([, one], [, other]) => other - one)
    const [only] = all
    if (untracked === 0 && all.length === 1 && only) return `all from ${only[0]}`
    const most = all.slice(0, namedAddresses).map(([address, each]) => `${address} (${each})`)
    const more = untracked > 0 ? 'more than ' : ''
    return `from ${more}${all.length} addresses, most from ${most.join(', ')}`
  }

  return {
    add(address, status) {
      count += 1
      increase(statuses, status)
      if (addresses.has(address) || addresses.size < mostAddresses) increase(addresses, address)
      else untracked += 1
    },
    entry(minutes) {
      const parts = [...statuses].map(([status, each]) => `${each} with ${status}`).join(', ')
      const [address = ''] = addresses.size === 1 && untracked === 0 ? addresses.keys() : []
      const message = `${count} more requests ${callers} were refused within ${timeOf(minutes)}: ${parts}, ${where()}`
      return { ...sumEntry(message), address }
    },
  }
}

/** The entry for the intent of a sum, whose count is not known yet. */
const startedEntry = (callers: string): AuditEntry =>
  sumEntry(`an unknown number of more requests ${callers} were refused`)

const sumEntry = (message: string): AuditEntry => ({
  actorType: 'user',
  actor: '',
  role: '',
  address: '',
  action: 'activity',
  kind: 'request',
  resourceName: '',
  resourceUid: '',
  message,
  outcome: 'refused',
  status: null,
  requestId: '',
})

const timeOf = (minutes: number) => (minutes === 1 ? 'a minute' : `${minutes} minutes`)

const increase = <Key>(counts: Map<Key, number>, key: Key) => void counts.set(key, (counts.get(key) ?? 0) + 1)

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

interface FloodOptions {
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
 * Records that a lasting flood may add to the trail. Ten records and a sum a minute would be 5.8 million a year, eight times
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
    const noted = trail.begin(startedEntry(callers))
    const minutes = Math.max(1, Math.ceil(sumAllowance.waitMs() / minuteMs))
    sumAllowance.take()
    return {
      uid: noted ?? trail.newUid(),
      isIntent: noted !== undefined,
      minutes,
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
