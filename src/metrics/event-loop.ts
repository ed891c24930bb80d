import { createHistogram, type HistogramFigures } from '../base/histogram.ts'

/** The event loop of this process. */
export interface LoopFigures {
  /** Seconds by which a timer came too late. */
  readonly lag: HistogramFigures
  /** Seconds in which it did something. */
  readonly busySeconds: number
}

export interface EventLoop {
  /** Reads it, and begins to measure the lag if that is not done yet. */
  read(): LoopFigures
  stop(): void
}

const intervalMs = 1_000
const forgottenAfterMs = 600_000
const upperBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/**
 * How late timers come. Only while it is read: even one wake a second shows in the CPU time of an idle host, and
 * `monitorEventLoopDelay` at its usual 10 ms takes 0.6 % of a core (docs/adr/0010-metrics.md).
 */
export function createEventLoop(monotonic: () => number): EventLoop {
  const lag = createHistogram(upperBounds)
  let timer: NodeJS.Timeout | undefined
  let readAt = 0
  let dueAt = 0

  function wait(): void {
    dueAt = monotonic() + intervalMs
    timer = setTimeout(look, intervalMs).unref()
  }

  function look(): void {
    const now = monotonic()
    // Timers may come a fraction of a millisecond early.
    lag.observe(Math.max(0, now - dueAt) / 1_000)
    timer = undefined
    if (now - readAt < forgottenAfterMs) wait()
  }

  return {
    read() {
      readAt = monotonic()
      if (!timer) wait()
      return { lag: lag.figures(), busySeconds: performance.eventLoopUtilization().active / 1_000 }
    },
    stop() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
