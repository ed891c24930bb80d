import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterDetails } from '../../../src/cluster/schemas.ts'
import { createRandom } from '../../support/random.ts'
import type { Edgehostd } from '../host/edgehostd.ts'

/** Kills the daemon with SIGKILL; systemd starts it again. @returns false while it was not running */
export async function killDaemon(host: Edgehostd): Promise<boolean> {
  const pid = await host.mainPid()
  if (pid === 0) return false
  const { exitCode } = await host.run(['kill', '-KILL', String(pid)])
  return exitCode === 0
}

/** Kills the daemon whenever a step has begun, ended or failed; for `onLook`. */
export function killAtBoundaries(host: Edgehostd) {
  const seen = new Set<string>()
  const kills: string[] = []
  return {
    /** After what the daemon was killed. */
    kills: kills as readonly string[],
    async onLook({ status: { steps } }: ClusterDetails): Promise<void> {
      const boundaries = steps.map(({ key, state }) => `${key} ${state}`).filter((each) => !seen.has(each))
      if (boundaries.length === 0) return
      if (!(await killDaemon(host))) return
      for (const each of boundaries) seen.add(each)
      kills.push(boundaries.join(', '))
    },
  }
}

export interface RandomKillOptions {
  readonly seed: number
  readonly count: number
  /** Longest time from one to the next, milliseconds. */
  readonly mostMs: number
}

/** Kills the daemon at random moments; ends after the last, or with the signal. @returns how many there were */
export async function killAtRandom(
  host: Edgehostd,
  { seed, count, mostMs }: RandomKillOptions,
  signal: AbortSignal,
): Promise<number> {
  const random = createRandom(seed)
  for (let kills = 0; kills < count;) {
    await sleep(random.below(mostMs), undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return kills
    if (await killDaemon(host)) kills += 1
  }
  return count
}
