import type { Clock } from '../../../system/clock.ts'

/** Decides when an object is looked at again, and whether a correction is told. */
export interface Pace {
  /** Notes a correction. @returns how it is told: not at all while a fight lasts that was told */
  corrected(key: string): 'correction' | 'fight' | undefined
  /** Monotonic time before which an object is not looked at again; 0 for most. */
  restsUntil(key: string): number
  forget(): void
}

/** So many corrections one after another are told; the next one is a fight. */
const toldCorrections = 3
const quietMs = 600_000
const firstRestMs = 10_000
const longestRestMs = 3_600_000

/**
 * An object that is changed again and again is in a fight with another controller, which putting it right does not end: it is put right
 * less and less often. The first corrections come at once, since a person may try twice.
 */
export function createPace(clock: Pick<Clock, 'monotonic'>): Pace {
  const fights = new Map<string, { count: number; at: number; restMs: number }>()
  return {
    corrected(key) {
      const now = clock.monotonic()
      const before = fights.get(key)
      const isFight = before !== undefined && now - before.at <= quietMs + 2 * before.restMs
      const count = isFight ? before.count + 1 : 1
      const restMs =
        count < 2 ? 0 : Math.min(firstRestMs * 2 ** Math.max(count - toldCorrections, 0), longestRestMs)
      fights.set(key, { count, at: now, restMs })
      if (count <= toldCorrections) return 'correction'
      return count === toldCorrections + 1 ? 'fight' : undefined
    },
    restsUntil(key) {
      const fight = fights.get(key)
      return fight ? fight.at + fight.restMs : 0
    },
    forget: () => fights.clear(),
  }
}
