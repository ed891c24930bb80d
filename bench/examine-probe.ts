import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProbeArgs, runProbe } from './probe.ts'
import { childrenOf, readPeakMiB } from './usage.ts'

export interface ExamineArgs {
  /** Of the daemon. */
  readonly pid: number
}

/** The process in which the daemon has an archive examined. */
export interface ExamineResult {
  /** Resident memory; 0 when there was none to look at. */
  readonly peakMiB: number
}

const betweenMs = 20
const { pid } = readProbeArgs() as ExamineArgs
let peakMiB = 0

const isExamine = (child: number): boolean => {
  try {
    return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('examine.cjs')
  } catch {
    // It has gone since.
    return false
  }
}

await runProbe({
  async look() {
    for (const child of childrenOf(pid).filter(isExamine)) peakMiB = Math.max(peakMiB, readPeakMiB(child))
    await sleep(betweenMs)
  },
  finish: (): ExamineResult => ({ peakMiB }),
})
