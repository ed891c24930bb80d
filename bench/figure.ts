import { noiseOf, pairedRatios, spread, type Spread } from './numbers.ts'
import type { Rig } from './rig.ts'

/** One line of the table. */
export interface Figure {
  readonly name: string
  /** Undefined when the measurements were too noisy; `note` says why. */
  readonly value: Spread | undefined
  readonly unit: '' | 's' | 'ms' | 'MiB' | 'KiB' | '%' | 'us' | 'req/s' | 'MB/s'
  /** Text of the limit that the value should keep; undefined for a line that only explains another. */
  readonly target?: string
  readonly note?: string
}

/** Takes the measurements behind a few lines of the table. */
export type Measure = (rig: Rig) => Promise<Figure[]>

/** The optional parts of a line. */
export type Remarks = Pick<Figure, 'target' | 'note'>

/** The line of a ratio, measured in pairs; it has no value when the baseline alone varied too much. */
export function ratioFigure(
  name: string,
  own: readonly number[],
  base: readonly number[],
  remarks: Remarks = {},
): Figure {
  const noise = noiseOf(base)
  if (noise === undefined) return { name, value: spread(pairedRatios(own, base)), unit: '', ...remarks }
  const note = `too noisy: the baseline alone varied by a factor of ${noise.toFixed(1)}`
  return { name, value: undefined, unit: '', ...remarks, note }
}
