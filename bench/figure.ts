import type { Rig } from './rig.ts'
import type { Spread } from './numbers.ts'

/** One line of the table. */
export interface Figure {
  readonly name: string
  /** Nothing when it could not be told; `note` says why. */
  readonly value: Spread | undefined
  readonly unit: '' | 'ms' | 'MiB' | '%' | 'us' | 'req/s'
  /** As issue and documents put them; nothing for a line that only explains another. */
  readonly target?: string
  readonly stretch?: string
  readonly note?: string
}

/** Takes the measurements behind a few lines of the table. */
export type Measure = (rig: Rig) => Promise<Figure[]>
