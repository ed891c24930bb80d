import { setTimeout as sleep } from 'node:timers/promises'
import { readProbeArgs, runProbe } from './probe.ts'
import { countChildren, readTreeMiB } from './usage.ts'

export interface MemoryArgs {
  readonly pid: number
}

/** Memory of the daemon and its children together. */
export interface MemoryResult {
  readonly beforeMiB: number
  readonly peakMiB: number
  readonly mostChildren: number
}

const betweenMs = 4
const { pid } = readProbeArgs() as MemoryArgs
const beforeMiB = readTreeMiB(pid)
let peakMiB = 0
let mostChildren = 0

await runProbe({
  async sample() {
    peakMiB = Math.max(peakMiB, readTreeMiB(pid))
    mostChildren = Math.max(mostChildren, countChildren(pid))
    await sleep(betweenMs)
  },
  finish: (): MemoryResult => ({ beforeMiB, peakMiB, mostChildren }),
})
