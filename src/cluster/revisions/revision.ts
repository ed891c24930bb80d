import type { ClusterConfiguration } from '../schemas.ts'
import type { Outcome } from './outcomes.ts'
import type { ClusterSummary } from '../summary.ts'

/** `goingBack`: the host made it by itself, of the packs of the last good revision and the Kubernetes that runs. */
export const origins = ['create', 'update', 'rollback', 'goingBack'] as const
export type Origin = (typeof origins)[number]

/** What was accepted for the cluster, once for each write that changes something. */
export interface Revision {
  /** Its number; `Wanted.generation`. */
  readonly generation: number
  /** When it was accepted; milliseconds since 1970, as are all times. */
  readonly at: number
  /** The account that wrote it; empty for a way back. */
  readonly by: string
  readonly origin: Origin
  /** `Wanted.folder` */
  readonly folder: string
  readonly summary: ClusterSummary
  /** The whole configuration, with sensitive values masked. */
  readonly posted: ClusterConfiguration
  /** The same in plain text; undefined where the secret of the state folder was replaced since. */
  readonly plain: ClusterConfiguration | undefined
  /** Values of sensitive variables, in plain text; empty where the secret of the state folder was replaced since. */
  readonly sensitive: readonly string[]
  /** `Sealed.mark` of what was posted. */
  readonly mark: Uint8Array
  readonly outcome: Outcome
  /** Why it is held or has failed; empty otherwise. */
  readonly reason: string
  /** Not to be begun before; null: at once. */
  readonly scheduleAt: number | null
  /** When it was good or has failed; null before. */
  readonly endedAt: number | null
  /** Its number on the platform, where that wanted it; null for one that was wanted here. */
  readonly platformNumber: number | null
}

export type NewRevision = Omit<Revision, 'endedAt' | 'reason' | 'plain' | 'platformNumber'> & {
  readonly plain: ClusterConfiguration | undefined
  readonly reason?: string
  readonly platformNumber?: number | null | undefined
}
