import { createHistogram, type HistogramFigures } from '../base/histogram.ts'

/** Figures of the event loop of this process. */
export interface LoopFigures {
  /** Seconds by which a timer fired late. */
  readonly lag: HistogramFigures
  /** Seconds in which the event loop was busy. */
  readonly busySeconds: number
}

export interface EventLoop {
  /** Reads the figures, and starts to measure the lag where that is not running. */
  read(): LoopFigures
  stop(): void
}

const intervalMs = 1_000
const forgottenAfterMs = 600_000
const upperBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/**
 * Measures how late timers fire, only while the metrics are read: even one wake-up a second shows in the CPU time of an
 * idle host, and `monitorEventLoopDelay` at its default of 10 ms takes 0.6 % of a core (docs/adr/0010-metrics.md).
 */
export function createEventLoop(monotonic: () => number): EventLoop {
  const lag = createHistogram(upperBounds)
  let timer: NodeJS.Timeout | undefined
  let readAt = 0
  let dueAt = 0

  function wait(): void {
    dueAt = monotonic() + intervalMs
    timer = setTimeout(measure, intervalMs).unref()
  }

  function measure(): void {
    const now = monotonic()
    // A timer may fire a fraction of a millisecond early.
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
