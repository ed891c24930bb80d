import { setTimeout as sleep } from 'node:timers/promises'
import type { Edgehostd } from '../../e2e/host/edgehostd.ts'
import { createRandom } from '../../support/random.ts'

/** What is killed of a run: its keeper, which is the main process of its unit, or the program that the keeper has started. */
export type Victim = 'keeper' | 'program'

export interface StepKillOptions {
  readonly victim: Victim
  readonly seed: number
}

const killsOfEach = 2
/** Longest time from the second start of a run to its second kill. */
const mostMs = 4_000

/**
 * Kills the lasting runs of steps with SIGKILL, each twice: the first time at its beginning, the second at a random moment. Ends with
 * the signal.
 * @returns how often each was killed, by the name of its unit
 */
export async function killSteps(
  host: Edgehostd,
  { victim, seed }: StepKillOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const random = createRandom(seed)
  const kills = new Map<string, number>()
  /** When a keeper, by its process id, is to be killed. */
  const dueAt = new Map<number, number>()
  while (!signal.aborted) {
    for (const { unit, keeper } of await runningSteps(host)) {
      const done = kills.get(unit) ?? 0
      if (done === killsOfEach) continue
      if (!dueAt.has(keeper)) dueAt.set(keeper, performance.now() + (done === 0 ? 0 : random.below(mostMs)))
      if (performance.now() < dueAt.get(keeper)!) continue
      const target = victim === 'keeper' ? keeper : await childOf(host, keeper)
      if (target === undefined) continue
      const { exitCode } = await host.run(['kill', '-KILL', String(target)])
      if (exitCode === 0) kills.set(unit, done + 1)
    }
    await sleep(25)
  }
  return kills
}

/** Units of steps that run, with the process ids of their keepers. */
async function runningSteps(host: Edgehostd) {
  const shown = await host.output(['systemctl', 'show', '--property=Id,MainPID', 'edgehostd-step-*'])
  return shown.split('\n\n').flatMap((each) => {
    const unit = /^Id=(.+)$/m.exec(each)?.[1]
    const keeper = Number(/^MainPID=(\d+)$/m.exec(each)?.[1])
    return unit && keeper ? [{ unit, keeper }] : []
  })
}

/** undefined before the program is started, and after its end. */
async function childOf(host: Edgehostd, keeper: number): Promise<number | undefined> {
  const { stdout } = await host.run(['pgrep', '--oldest', '--parent', String(keeper)])
  return Number(stdout) || undefined
}
