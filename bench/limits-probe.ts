import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createRateCounters } from '../src/api/rate/counters.ts'
import { clientFromAnywhere } from '../src/base/client.ts'

/** What a flood of distinct addresses leaves behind in the counters. */
export interface FloodResult {
  readonly addresses: number
  readonly counters: number
  readonly memoryMiB: number
  /** The longest that one of them held the event loop, in time of the processor: others may want it too. */
  readonly longestMs: number
}

const addresses = 1_000_000
// As many requests a millisecond, far more than any host can take: none of their buckets is full again in time.
const perMs = 1_000

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function readThreadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Text of an address as the socket has it. */
const textOf = (index: number, family: 'IPv4' | 'IPv6') =>
  family === 'IPv4'
    ? `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
    : `2001:db8:${(index >> 16).toString(16)}:${(index & 65_535).toString(16)}::1`

function flood(maximum: number, family: 'IPv4' | 'IPv6'): FloodResult {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const counters = createRateCounters(maximum)
  const counter = counters.open({ requestsPerSecond: 10, burst: 5 })
  let longestMs = 0
  for (let index = 0; index < addresses; index += 1) {
    const { name: client } = clientFromAnywhere(textOf(index, family))
    const before = readThreadMs()
    counter.take(client, Math.floor(index / perMs))
    longestMs = Math.max(longestMs, readThreadMs() - before)
  }
  collectGarbage()
  const memoryMiB = (process.memoryUsage().heapUsed - before) / 2 ** 20
  return { addresses, counters: counters.size(), memoryMiB, longestMs }
}

const [maximum = '', family = ''] = process.argv.slice(2)
console.log(JSON.stringify(flood(Number(maximum), family === 'IPv6' ? 'IPv6' : 'IPv4')))
