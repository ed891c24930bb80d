import { createEventLoop } from './event-loop.ts'
import type { Exposition } from './exposition.ts'
import { families } from './families.ts'
import { gatherFigures, type MetricsSources } from './figures.ts'

/** What the daemon says of itself to Prometheus. */
export interface Metrics {
  read(format: 'prometheus' | 'openmetrics'): Promise<Exposition>
  stop(): void
}

/** Everything is asked when it is read; until then nothing runs, and the library is not even loaded. */
export function createMetrics(sources: MetricsSources, monotonic: () => number): Metrics {
  const loop = createEventLoop(monotonic)
  return {
    async read(format) {
      const { writeExposition } = await import('./exposition.ts')
      return writeExposition(families, await gatherFigures(sources, loop.read()), format)
    },
    stop: () => loop.stop(),
  }
}
