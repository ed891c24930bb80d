import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProbeArgs, runProbe } from './probe.ts'
import { childrenOf, readPeakMiB } from './usage.ts'

export interface ExamineArgs {
  /** Of the daemon. */
  readonly pid: number
}

/** Memory of `examine.cjs`, in which the daemon has an archive examined. */
export interface ExamineResult {
  /** Resident memory; 0 when no such process was seen. */
  readonly peakMiB: number
}

const betweenMs = 20
const { pid } = readProbeArgs() as ExamineArgs
let peakMiB = 0

const isExamine = (child: number): boolean => {
  try {
    return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('examine.cjs')
  } catch {
    // The process has ended meanwhile.
    return false
  }
}

await runProbe({
  async sample() {
    for (const child of childrenOf(pid).filter(isExamine)) peakMiB = Math.max(peakMiB, readPeakMiB(child))
    await sleep(betweenMs)
  },
  finish: (): ExamineResult => ({ peakMiB }),
})
