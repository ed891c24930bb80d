import { setTimeout as sleep } from 'node:timers/promises'
import { readProbeArgs, runProbe } from './probe.ts'
import { readRssMiB, readTreeMiB, readTreeRssMiB } from './usage.ts'

export interface RssArgs {
  /** Of the daemon. */
  readonly pid: number
}

/** The most resident memory of the daemon alone, and of the daemon with all below it. */
export interface RssResult {
  readonly daemonMiB: number
  readonly treeMiB: number
  /** The same with each shared page counted once (Pss). */
  readonly treePssMiB: number
}

const betweenMs = 10
const { pid } = readProbeArgs() as RssArgs
let daemonMiB = 0
let treeMiB = 0
let treePssMiB = 0

await runProbe({
  async sample() {
    daemonMiB = Math.max(daemonMiB, readRssMiB(pid))
    treeMiB = Math.max(treeMiB, readTreeRssMiB(pid))
    treePssMiB = Math.max(treePssMiB, readTreeMiB(pid))
    await sleep(betweenMs)
  },
  finish: (): RssResult => ({ daemonMiB, treeMiB, treePssMiB }),
})
