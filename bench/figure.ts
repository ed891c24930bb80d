import { noiseOf, pairedRatios, spread, type Spread } from './numbers.ts'
import type { Rig } from './rig.ts'

/** One line of the table. */
export interface Figure {
  readonly name: string
  /** Nothing when it could not be told; `note` says why. */
  readonly value: Spread | undefined
  readonly unit: '' | 's' | 'ms' | 'MiB' | '%' | 'us' | 'req/s' | 'MB/s'
  /** As issue and documents put them; nothing for a line that only explains another. */
  readonly target?: string
  readonly note?: string
}

/** Takes the measurements behind a few lines of the table. */
export type Measure = (rig: Rig) => Promise<Figure[]>

/** What a line may say beside its value. */
export type Remarks = Pick<Figure, 'target' | 'note'>

/** The line of a ratio, measured in pairs; without a value when the baseline alone moved too much to tell. */
export function ratioFigure(
  name: string,
  own: readonly number[],
  base: readonly number[],
  remarks: Remarks = {},
): Figure {
  const noise = noiseOf(base)
  if (noise === undefined) return { name, value: spread(pairedRatios(own, base)), unit: '', ...remarks }
  const note = `too noisy to tell: the baseline alone moved by a factor of ${noise.toFixed(1)}`
  return { name, value: undefined, unit: '', ...remarks, note }
}
