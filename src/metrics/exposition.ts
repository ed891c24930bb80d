// Only the registry of the library is used: it writes both formats. The library's metric classes would count themselves;
// here each room counts for itself and is asked for its figures.
import Registry, { type SeriesValue } from '@prometheus-io/client/lib/registry.js'
import type { HistogramFigures, Sample } from '../base/sample.ts'
import type { Family, Figures, Sampled } from '../root/room.ts'

/** A document for Prometheus. */
export interface Exposition {
  readonly contentType: string
  readonly text: string
}

/** Writes all families, in Prometheus' text format 0.0.4 or as OpenMetrics 1.0.0. */
export async function writeExposition(
  families: Readonly<Record<string, Family>>,
  figures: Figures,
  format: 'prometheus' | 'openmetrics',
): Promise<Exposition> {
  const registry = new Registry(
    format === 'openmetrics' ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE,
  )
  for (const [name, { type, help }] of Object.entries(families)) {
    registry.registerMetric({
      name,
      type,
      get() {
        const values = samplesOf(figures[name]).flatMap((sample) => toSeries(name, sample))
        return Promise.resolve({ name: this.name, help, type, values })
      },
    })
  }
  return { contentType: registry.contentType, text: await registry.metrics() }
}

function samplesOf(sampled: Sampled): readonly Sample[] {
  if (sampled === undefined) return []
  const isOne = typeof sampled === 'number' || 'upperBounds' in sampled
  return isOne ? [{ labels: {}, value: sampled }] : sampled
}

function toSeries(name: string, { labels, value }: Sample): SeriesValue[] {
  return typeof value === 'number' ? [{ labels, value }] : histogramSeries(name, labels, value)
}

// Buckets are cumulative, and the last one counts all values.
function histogramSeries(
  name: string,
  labels: Sample['labels'],
  { upperBounds, counts, sum }: HistogramFigures,
): SeriesValue[] {
  let below = 0
  const buckets = [...upperBounds.map(String), '+Inf'].map((le, index) => {
    below += counts[index] ?? 0
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: below },
  ]
}
