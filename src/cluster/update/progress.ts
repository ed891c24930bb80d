import type { Clock } from '../../system/clock.ts'

/** How long the present revision has been applied; it counts by the monotonic clock, and begins anew with the daemon. */
export interface Progress {
  /** Notes a look. @returns the times until now, milliseconds */
  look(generation: number, isInChange: boolean): { readonly inChangeMs: number; readonly elsewhereMs: number }
  /** Begins anew. */
  reset(): void
}

export function createProgress(clock: Pick<Clock, 'monotonic'>): Progress {
  let known = 0
  let lastAt = 0
  let inChangeMs = 0
  let elsewhereMs = 0
  return {
    look(generation, isInChange) {
      const now = clock.monotonic()
      if (known === generation) {
        if (isInChange) inChangeMs += now - lastAt
        else elsewhereMs += now - lastAt
      } else {
        known = generation
        inChangeMs = 0
        elsewhereMs = 0
      }
      lastAt = now
      return { inChangeMs, elsewhereMs }
    },
    reset: () => void (known = 0),
  }
}
