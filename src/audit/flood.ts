import type { AuditEntry } from './record.ts'
import type { Trail } from './trail.ts'

/**
 * Keeps refusals from filling the trail: beyond some, those of a minute become one record for each address. Its uid is
 * given out with the first that it counts, so it is an intent on the disk from then on.
 */
export interface Flood {
  /** Counts a refusal; nothing when it is to be recorded by itself, else the uid of the record that counts it. */
  count(address: string, status: number): string | undefined
  /** Writes what was counted, and ends the minute. */
  flush(): void
}

interface Counter {
  /** All refusals of the minute. */
  seen: number
  /** Of the record that is to come; made with the first refusal it counts. */
  uid: string | undefined
  isIntent: boolean
  readonly counts: Map<number, number>
}

const perAddress = 30
const inAll = 120
const trackedAddresses = 100
const minuteMs = 60_000

/** @param trail where the sums go */
export function createFlood(trail: Trail): Flood {
  let counters = new Map<string, Counter>()
  let recorded = 0
  let timer: NodeJS.Timeout | undefined

  function counterOf(address: string): Counter {
    const isTracked = counters.has(address) || counters.size < trackedAddresses
    const key = isTracked ? address : ''
    const counter: Counter = counters.get(key) ?? {
      seen: 0,
      uid: undefined,
      isIntent: false,
      counts: new Map(),
    }
    counters.set(key, counter)
    return counter
  }

  function begin(address: string, counter: Counter): string {
    const noted = trail.tryBegin(sumEntry(counters.has(address) ? address : '', undefined))
    counter.isIntent = noted !== undefined
    return noted ?? trail.newUid()
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const ended = counters
    counters = new Map()
    recorded = 0
    for (const [address, { uid, isIntent, counts }] of ended) {
      if (uid === undefined) continue
      if (isIntent) trail.finish(uid, sumEntry(address, counts))
      else trail.append(sumEntry(address, counts), uid)
    }
  }

  return {
    count(address, status) {
      timer ??= setTimeout(flush, minuteMs).unref()
      const counter = counterOf(address)
      counter.seen += 1
      if (counter.seen <= perAddress && recorded < inAll) {
        recorded += 1
        return undefined
      }
      counter.uid ??= begin(address, counter)
      counter.counts.set(status, (counter.counts.get(status) ?? 0) + 1)
      return counter.uid
    },
    flush,
  }
}

/** @param counts by status; nothing while they are not known */
function sumEntry(address: string, counts: ReadonlyMap<number, number> | undefined): AuditEntry {
  const sum = counts ? [...counts.values()].reduce((all, each) => all + each, 0) : 'an unknown number of'
  const parts = counts
    ? `: ${[...counts].map(([status, count]) => `${count} with ${status}`).join(', ')}`
    : ''
  const where = address === '' ? 'many other addresses' : address
  return {
    ...{ actorType: 'user', actor: '', role: '', address },
    ...{ action: 'activity', kind: 'request', resourceName: '', resourceUid: '' },
    message: `${sum} more requests from ${where} were refused within a minute${parts}`,
    ...{ outcome: 'refused', status: null, requestId: '' },
  }
}
