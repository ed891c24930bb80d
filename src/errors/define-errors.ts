/** One error that a client can meet. */
export interface ErrorKind {
  /** Stable, `UpperCamelCase`. */
  readonly code: string
  /** The HTTP status. */
  readonly status: number
  /** What it means, for docs/errors.md. */
  readonly meaning: string
  /** What the operator can do. */
  readonly action: string
}

/** Errors by their code. */
export type ErrorTable = Readonly<Record<string, ErrorKind>>

/**
 * The errors of a room. Codes are stable, texts may improve; docs/errors.md is made from the tables of all rooms, and
 * no code may stand in two of them.
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
