import { join } from 'node:path'
import type { HistogramFigures } from '../base/histogram.ts'
import { sizeOf, spaceOf } from '../system/file-sizes.ts'
import { readProcessFigures, type ProcessFigures } from '../system/process-figures.ts'

/** What the rooms know of themselves. Asked when somebody reads the metrics, and never in between. */
export interface MetricsSources {
  readonly build: { readonly version: string; readonly node: string; readonly mode: string }
  requests(): readonly {
    readonly method: string
    readonly route: string
    readonly statuses: ReadonlyMap<number, number>
    readonly durations: HistogramFigures
  }[]
  /** By resource. */
  rateRefusals(): ReadonlyMap<string, number>
  connections(): number
  logins(): readonly { readonly purpose: string; readonly outcome: string; readonly count: number }[]
  pam(): { readonly working: number; readonly children: number; readonly waiting: number }
  sessions(): number
  facts(): readonly {
    readonly name: string
    readonly refreshClass: string
    readonly ageMs: number | undefined
    readonly durationMs: number | undefined
    readonly isFailing: boolean
  }[]
  jobs(): readonly {
    readonly name: string
    readonly runs: number
    readonly failures: number
    readonly durationMs: number | undefined
    readonly sinceSuccessMs: number | undefined
  }[]
  certificateEnd(): Date
  auditUnwritten(): number
  /** Holds `edgehostd.db`. */
  readonly stateDirectory: string
}

/** The event loop of this process. */
export interface LoopFigures {
  /** Seconds by which a timer came too late. */
  readonly lag: HistogramFigures
  /** Seconds in which it did something. */
  readonly busySeconds: number
}

/** Everything at one moment. */
export interface Figures {
  readonly sources: MetricsSources
  readonly loop: LoopFigures
  readonly process: ProcessFigures
  readonly databaseBytes: number | undefined
  readonly walBytes: number | undefined
  readonly space: { readonly sizeBytes: number; readonly freeBytes: number } | undefined
}

/** Looks at what has to be asked for: the process and its files. */
export async function gatherFigures(sources: MetricsSources, loop: LoopFigures): Promise<Figures> {
  const database = join(sources.stateDirectory, 'edgehostd.db')
  const [process, databaseBytes, walBytes, space] = await Promise.all([
    readProcessFigures(),
    sizeOf(database),
    sizeOf(`${database}-wal`),
    spaceOf(sources.stateDirectory),
  ])
  return { sources, loop, process, databaseBytes, walBytes, space }
}
