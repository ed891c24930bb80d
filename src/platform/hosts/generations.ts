/** What the platform knows of the logins of a host. */
export interface Generations {
  /** The generation that the last login got; 0 before the first. */
  readonly last: number
  /** Whether a token of the last login was used: then the host has stored its generation. */
  readonly isUsed: boolean
  /** Whether two hosts with one key were seen; every login is refused then. */
  readonly isTwice: boolean
  /** Whether an administrator has chosen: the next login counts, whatever its generation. */
  readonly isNextAccepted: boolean
}

/** What to do with a login. */
export type GenerationVerdict = { readonly next: number } | 'twice'

/**
 * Judges a login by the generation that the host names. Each login gets the next one, which the host stores before it uses its token. So a disk that
 * was cloned shows: two hosts name the same generation, and the second one names an old one.
 *
 * - the last one: the usual case;
 * - the one before: the reply of the last login was lost, if its token was never used;
 * - a newer one than is known: the platform was restored from a backup;
 * - any other: another host has this key.
 */
export function judgeGeneration(
  { last, isUsed, isTwice, isNextAccepted }: Generations,
  presented: number,
): GenerationVerdict {
  if (isNextAccepted) return { next: Math.max(last, presented) + 1 }
  if (isTwice) return 'twice'
  if (presented >= last) return { next: presented + 1 }
  return presented === last - 1 && !isUsed ? { next: last } : 'twice'
}
