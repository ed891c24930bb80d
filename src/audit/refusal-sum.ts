import type { AuditEntry } from './record.ts'

/** Sums refusals for one record, in bounded memory, whatever their number of addresses. */
export interface RefusalSum {
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
export const begunEntry = (callers: string): AuditEntry =>
  sumEntry(`an unknown number of more requests ${callers} were refused`)

const sumEntry = (message: string): AuditEntry => ({
  ...{ actorType: 'user', actor: '', role: '', address: '' },
  ...{ action: 'activity', kind: 'request', resourceName: '', resourceUid: '' },
  message,
  ...{ outcome: 'refused', status: null, requestId: '' },
})

const timeOf = (minutes: number) => (minutes === 1 ? 'a minute' : `${minutes} minutes`)

const increase = <Key>(counts: Map<Key, number>, key: Key) => void counts.set(key, (counts.get(key) ?? 0) + 1)
