import type { ArchiveLimits } from '../../archive/limits.ts'
import type { DeclaringProfile, Problem } from '../definition.ts'
import type { Verdict } from '../rules/pattern.ts'
import type { GivenVariable, ValidatedVariable } from '../rules/variables.ts'
import type { Refused } from '../../program/worker.ts'

/**
 * The protocol between the daemon and the program `examine.cjs`. The first line of standard input is the order, JSON. For
 * an examination, further lines follow: each is the number of bytes that can be read by now, the last one is `end`.
 * Standard output is the finding, JSON.
 */
export interface ExaminationOrder {
  /** The archive, which may still grow. */
  readonly file: string
  /** Where the results go and the archive is unpacked meanwhile. It exists, and only the daemon's upload writes there too. */
  readonly folder: string
  readonly limits: Partial<ArchiveLimits>
  /** Space that stays free on the disk of the folder, whatever the archive unpacks to. */
  readonly reserveBytes: number
  /** Whether the archive is hashed too. */
  readonly isHashed: boolean
}

/** An order to judge values for the variables of a definition in a slot, if that is too much work for the daemon. */
export interface JudgementOrder {
  /** Path of its `profiles.json`. */
  readonly profiles: string
  readonly given: readonly GivenVariable[]
}

/** The line after the last number. */
export const endLine = 'end'

/** What the API shows: `ClusterProfileDetail[]`. */
export const detailsFile = 'details.json'
/** What a validation of variables needs, with defaults in plain text: `StoredProfiles`. */
export const profilesFile = 'profiles.json'

/** Up to version 0.1 the file held the profiles alone, without the sizes of their patterns. */
export type StoredProfiles = CountedProfiles | readonly DeclaringProfile[]

export interface CountedProfiles {
  readonly profiles: readonly DeclaringProfile[]
  /** The verdict on every pattern, so that the daemon need not compile a pattern to know its size. */
  readonly patterns: readonly (readonly [source: string, verdict: Verdict])[]
}

/** A definition that can be used. */
export interface Examined {
  readonly name: string
  readonly version: string
  /** Of the archive, hex; empty if not requested. */
  readonly sha256: string
  readonly sizeBytes: number
  /** Warnings. */
  readonly problems: readonly Problem[]
}

/** The result of judging values. */
export interface Judgement {
  readonly variables: readonly ValidatedVariable[]
  readonly patterns: CountedProfiles['patterns']
}

export type Finding =
  { readonly examined: Examined } | { readonly judged: Judgement } | { readonly refused: Refused }
