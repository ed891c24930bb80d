/** A histogram: observed values by size. */
export interface HistogramFigures {
  readonly upperBounds: readonly number[]
  /** Count of each bucket, not cumulative; the last one counts the values above every bound. */
  readonly counts: readonly number[]
  /** Sum of all observed values. */
  readonly sum: number
}

export interface Histogram {
  observe(value: number): void
  figures(): HistogramFigures
}

/**
 * Counts observations in buckets.
 * @param upperBounds in ascending order; a bound is inclusive
 */
export function createHistogram(upperBounds: readonly number[]): Histogram {
  const counts = Array<number>(upperBounds.length + 1).fill(0)
  let sum = 0
  return {
    observe(value) {
      let bucket = 0
      while (value > (upperBounds[bucket] ?? Infinity)) bucket += 1
      counts[bucket] = (counts[bucket] ?? 0) + 1
      sum += value
    },
    figures: () => ({ upperBounds, counts: [...counts], sum }),
  }
}

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
