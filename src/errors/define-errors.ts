/** One kind of error that a client can receive. */
export interface ErrorKind {
  /** Stable, `UpperCamelCase`. */
  readonly code: string
  /** The HTTP status. */
  readonly status: number
  /** Its meaning, for docs/errors.md. */
  readonly meaning: string
  /** Advice for the operator. */
  readonly action: string
}

/** Error kinds by code. */
export type ErrorTable = Readonly<Record<string, ErrorKind>>

/**
 * Declares the errors of a room. Codes are stable, texts may improve. docs/errors.md is generated from the tables of
 * all rooms, and a code may appear in only one of them.
 */
export function defineErrors<const Code extends string>(
  table: Readonly<Record<Code, Omit<ErrorKind, 'code'>>>,
): Readonly<Record<Code, ErrorKind>> {
  const kinds = Object.entries<Omit<ErrorKind, 'code'>>(table).map(([code, kind]) => [
    code,
    { code, ...kind },
  ])
  return Object.freeze(Object.fromEntries(kinds) as Record<Code, ErrorKind>)
}
