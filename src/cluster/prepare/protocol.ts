import type { ArchiveLimits } from '../../archive/limits.ts'
import type { Refused } from '../../program/worker.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import type { PreparedVariable, PrepareRequest } from '../desired/prepared.ts'
import type { PackNeeds } from '../needs/needs.ts'

/**
 * The protocol between the daemon and the program `prepare.cjs`: standard input is the order, JSON, which contains values of
 * variables; standard output is the finding, JSON.
 */
export interface PrepareOrder {
  /** The staging folder, with the copy of the definition; the results go there too. */
  readonly folder: string
  /** SHA-256 of the archive, hex, as it was examined. */
  readonly sha256: string
  /** Final path of the folder. */
  readonly target: string
  readonly request: Omit<PrepareRequest, 'archiveUploadPath' | 'source'>
  /** Path of helm; undefined if this host has none. */
  readonly helm: string | undefined
  /**
   * Files of charts that the definition does not contain, by `name:version`; null for one that is not in the content. Undefined
   * in the first order; the finding then says which charts are needed.
   */
  readonly charts: Readonly<Record<string, string | null>> | undefined
  readonly limits: Partial<ArchiveLimits>
  /** Space that stays free on the disk. */
  readonly reserveBytes: number
}

/** Findings of the program; the files are in the folder of the order. */
export interface PreparedContent {
  readonly desired: DesiredState
  readonly problems: readonly PreflightProblem[]
  readonly variables: readonly PreparedVariable[]
  readonly derived: readonly string[]
  readonly needs: readonly PackNeeds[]
}

export type PrepareFinding =
  | { readonly prepared: PreparedContent }
  /** Charts of the content, `name:version`, that a second order has to name. */
  | { readonly needsCharts: readonly string[] }
  | { readonly refused: Refused }
