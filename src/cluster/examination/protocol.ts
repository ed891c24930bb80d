import type { ErrorCode } from '../../errors/codes.ts'
import type { ArchiveLimits } from '../archive/limits.ts'
import type { Problem } from '../definition.ts'

/**
 * What the daemon and the program `examine.cjs` say to each other. First line of standard input: the order. Then a
 * number a line: how many bytes of the archive can be read by now. Then `end`. Standard output: the finding, JSON.
 */
export interface ExaminationOrder {
  /** The archive, which may still grow. */
  readonly file: string
  /** Where the results go, and the texts of the archive for a while. It is there, and nobody else writes in it. */
  readonly folder: string
  readonly limits: Partial<ArchiveLimits>
  /** Whether the archive is hashed too. */
  readonly isHashed: boolean
}

/** The line after the last number. */
export const endLine = 'end'

/** What the API shows: `ClusterProfileDetail[]`. */
export const detailsFile = 'details.json'
/** What a validation of variables needs, defaults in clear: `DeclaringProfile[]`. */
export const profilesFile = 'profiles.json'

/** A definition that can be used. */
export interface Examined {
  readonly name: string
  readonly version: string
  /** Of the archive, hex; empty where it was not asked for. */
  readonly sha256: string
  readonly sizeBytes: number
  /** Warnings. */
  readonly problems: readonly Problem[]
}

/** Why an archive is refused; becomes an AppError of the daemon. */
export interface Refused {
  readonly code: ErrorCode
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

export type Finding = { readonly examined: Examined } | { readonly refused: Refused }
