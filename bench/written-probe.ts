import { setTimeout as sleep } from 'node:timers/promises'
import { readProbeArgs, runProbe } from './probe.ts'
import { childrenOf, readWrittenBytes } from './usage.ts'

export interface WrittenArgs {
  /** Of the daemon. */
  readonly pid: number
}

/** Bytes that the daemon and its children have written since the start of the probe. */
export interface WrittenResult {
  readonly bytes: number
}

// What a child writes in the last milliseconds of its life is not seen.
const betweenMs = 4
const { pid } = readProbeArgs() as WrittenArgs
const before = readWrittenBytes(pid) ?? 0
const written = new Map<number, number>()

await runProbe({
  async sample() {
    for (const each of [pid, ...childrenOf(pid)]) {
      const bytes = readWrittenBytes(each)
      if (bytes !== undefined) written.set(each, bytes)
    }
    await sleep(betweenMs)
  },
  finish: (): WrittenResult => ({ bytes: [...written.values()].reduce((sum, each) => sum + each, -before) }),
})
