// A room declares its metrics in `about.ts` and returns their current values from `figures()`, which is called for each request for `/metrics`;
// `metrics/exposition.ts` writes them. docs/metrics.md and the tests of dashboard and rules use the declarations. Only requests are counted as they
// happen (`api/server.ts`): a row for each declared route and one for all other paths, so no client can create series (ADR 10).

import { createHistogram, type HistogramFigures } from '../base/sample.ts'
import { metricName } from '../base/program.ts'
import { readProcessFigures } from '../system/process-figures.ts'
import type { Family, FiguresOf, Ground, Room, Sampled } from '../root/room.ts'
import type { about } from './about.ts'
import { metricsRoutes } from './routes.ts'
import { readScrapeAccess } from './scrape-access.ts'

/** Figures of the event loop of this process. */
interface LoopFigures {
  /** Seconds by which a timer fired late. */
  readonly lag: HistogramFigures
  /** Seconds in which the event loop was busy. */
  readonly busySeconds: number
}

interface EventLoop {
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

interface MetricsSettings {
  readonly enabled: boolean
  readonly tokenFile?: string
}

interface MetricsOptions {
  /** The metrics of all rooms, in the order in which they are shown. */
  readonly families: Readonly<Record<string, Family>>
  /** The figures of each room. */
  readonly figures: readonly NonNullable<Room['figures']>[]
  /** A label of `edgehostd_build_info`. */
  readonly mode?: string
}

/**
 * Builds the metrics for Prometheus. The rooms are asked for their figures when a client reads the metrics; before the first
 * scrape nothing is measured, and the library is not even loaded.
 * @throws TokenFileUnusable
 */
export async function createMetrics(
  ground: Ground<{ readonly metrics: MetricsSettings }>,
  own: MetricsOptions,
): Promise<Room> {
  const { version, clock, log } = ground
  const { families, mode } = own
  const settings = ground.config.metrics
  if (!settings.enabled) return {}
  const loop = createEventLoop(() => clock.monotonic())
  const scrapeAccess = await readScrapeAccess(settings.tokenFile, log)

  async function ownFigures(): Promise<FiguresOf<typeof about.families>> {
    const { lag, busySeconds } = loop.read()
    const process = await readProcessFigures()
    return {
      edgehostd_build_info: [
        { labels: { version, node: globalThis.process.version, mode: mode ?? '' }, value: 1 },
      ],
      edgehostd_event_loop_lag_seconds: lag,
      edgehostd_event_loop_busy_seconds_total: busySeconds,
      process_cpu_seconds_total: process.cpuSeconds,
      process_resident_memory_bytes: process.residentBytes,
      process_start_time_seconds: process.startedAt,
      process_open_fds: process.openFiles,
      process_max_fds: process.maximumFiles,
    }
  }

  return {
    async routes(app) {
      await metricsRoutes(app, {
        scrapeAccess,
        async read(format) {
          const { writeExposition } = await import('./exposition.ts')
          const figures: Record<string, Sampled> = {}
          for (const ask of [...own.figures, ownFigures])
            for (const [name, sampled] of Object.entries(await ask())) figures[metricName(name)] = sampled
          return writeExposition(families, figures, format)
        },
      })
    },
    reload: () => scrapeAccess.reload(),
    stop: () => loop.stop(),
  }
}
