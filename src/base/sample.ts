import type { HistogramFigures } from './histogram.ts'

/** One line of a metric, or the lines of one histogram. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | HistogramFigures
}

/** One sample for each item that has a value. */
export function sampleEach<T>(
  items: Iterable<T>,
  labels: (item: T) => Sample['labels'],
  value: (item: T) => Sample['value'] | undefined,
): Sample[] {
  return [...items].flatMap((item) => {
    const found = value(item)
    return found === undefined ? [] : [{ labels: labels(item), value: found }]
  })
}

/** Prometheus uses seconds. */
export const inSeconds = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : ms / 1_000
