// Statistics of a series of measurements. Pure.

/** Median and range of a series. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The quantile of a series, by the nearest rank: 0.99 for p99. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  const upper = sorted[half] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** The spread of a figure that is measured only once. */
export function single(value: number): Spread {
  return { median: value, min: value, max: value }
}

/** Ratios of a candidate to a baseline, measured in pairs. */
export function pairedRatios(candidate: readonly number[], baseline: readonly number[]): number[] {
  return candidate.map((value, index) => value / (baseline[index] ?? Number.NaN))
}

// A baseline whose largest value is more than this times its smallest says nothing about a candidate.
const largestBaselineSpread = 3

/** Largest ÷ smallest value of a baseline that varies too much for a ratio; undefined for a usable one. */
export function noiseOf(baseline: readonly number[]): number | undefined {
  const { min, max } = spread(baseline)
  return max > largestBaselineSpread * min ? max / min : undefined
}

/**
 * Probability that two series differ by chance as much as these two: Mann-Whitney test, two-sided, by the normal
 * approximation, good from about 20 values each.
 */
export function chanceOfSame(a: readonly number[], b: readonly number[]): number {
  let wins = 0
  for (const x of a) for (const y of b) wins += x > y ? 1 : x === y ? 0.5 : 0
  const mean = (a.length * b.length) / 2
  const deviation = Math.sqrt((a.length * b.length * (a.length + b.length + 1)) / 12)
  return 2 * (1 - normalBelow(Math.abs(wins - mean) / deviation))
}

// Abramowitz and Stegun 26.2.17; off by less than 1e-7.
function normalBelow(z: number): number {
  const t = 1 / (1 + 0.2316419 * z)
  const terms = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429]
  const sum = terms.reduce((total, factor, index) => total + factor * t ** (index + 1), 0)
  return 1 - (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum
}
