import type { ErrorKind } from '../../errors/define-errors.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { DeclaringProfile, Problem } from '../definition.ts'
import type { Verdict } from '../rules/pattern.ts'
import type { GivenVariable, ValidatedVariable } from '../rules/variables.ts'

/**
 * What the daemon and the program `examine.cjs` say to each other. First line of standard input: the order. Where that is
 * to examine an archive, then a number a line: how many bytes of it can be read by now, then `end`. Standard output: the
 * finding, JSON.
 */
export interface ExaminationOrder {
  /** The archive, which may still grow. */
  readonly file: string
  /** Where the results go, and the texts of the archive for a while. It exists, and no other process writes in it. */
  readonly folder: string
  readonly limits: Partial<ArchiveLimits>
  /** What stays free on the disk of the folder, whatever the archive unpacks to. */
  readonly reserveBytes: number
  /** Whether the archive is hashed too. */
  readonly isHashed: boolean
}

/** To judge values for the variables of a definition that is in a slot, where that is too much work for the daemon. */
export interface JudgementOrder {
  /** Path of its `profiles.json`. */
  readonly profiles: string
  readonly given: readonly GivenVariable[]
}

/** The line after the last number. */
export const endLine = 'end'

/** What the API shows: `ClusterProfileDetail[]`. */
export const detailsFile = 'details.json'
/** What a validation of variables needs, defaults in clear: `StoredProfiles`. */
export const profilesFile = 'profiles.json'

/** Up to version 0.1 there were the profiles alone, their patterns not counted. */
export type StoredProfiles = CountedProfiles | readonly DeclaringProfile[]

export interface CountedProfiles {
  readonly profiles: readonly DeclaringProfile[]
  /** What was found out of every pattern, so that the daemon need not compile one to know its size. */
  readonly patterns: readonly (readonly [source: string, verdict: Verdict])[]
}

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

/** What was found of values. */
export interface Judgement {
  readonly variables: readonly ValidatedVariable[]
  readonly patterns: CountedProfiles['patterns']
}

/** Why an archive is refused; becomes an AppError of the daemon. */
export interface Refused {
  readonly kind: ErrorKind
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

export type Finding =
  { readonly examined: Examined } | { readonly judged: Judgement } | { readonly refused: Refused }
