import { metricName } from '../base/program.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { readProcessFigures } from '../system/process-figures.ts'
import type { Family, FiguresOf, Room, Sampled } from '../room.ts'
import type { about } from './about.ts'
import { createEventLoop } from './event-loop.ts'
import { metricsRoutes } from './routes.ts'
import { readScrapeAccess } from './scrape-access.ts'

export interface MetricsOptions {
  readonly settings: { readonly enabled: boolean; readonly tokenFile?: string }
  /** The metrics of all rooms, in the order in which they are shown. */
  readonly families: Readonly<Record<string, Family>>
  /** The figures of each room. */
  readonly figures: readonly NonNullable<Room['figures']>[]
  /** Labels of `edgehostd_build_info`. */
  readonly build: { readonly version: string; readonly mode?: string }
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Builds the metrics for Prometheus. The rooms are asked for their figures when a client reads the metrics; before the first
 * scrape nothing is measured, and the library is not even loaded.
 * @throws TokenFileUnusable
 */
export async function createMetrics(options: MetricsOptions): Promise<Room> {
  const { settings, families, clock, log } = options
  const { version, mode } = options.build
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
          for (const ask of [...options.figures, ownFigures])
            for (const [name, sampled] of Object.entries(await ask())) figures[metricName(name)] = sampled
          return writeExposition(families, figures, format)
        },
      })
    },
    reload: () => scrapeAccess.reload(),
    stop: () => loop.stop(),
  }
}
