/** What a caller has presented, as the guard knows it. */
interface Presented {
  /** Of the user or the host. */
  readonly uid?: string | undefined
  readonly kind?: 'user' | 'key' | 'host' | undefined
  /** The session of a token, or the uid of a key. */
  readonly sessionUid: string | undefined
}

/**
 * Is told what ends requests in flight, when it is in the database. Credentials that expire end none, nor does a token that is exchanged for a
 * new one, or a further login of a host: a long request outlasts them.
 */
export interface CallerChanges {
  /** Users, keys, hosts or tokens are not accepted any more. */
  gone(isGone: (caller: Presented) => boolean): void
  /**
   * Roles were changed, or a project deleted: for each request in flight `authorize` decides again, and the request ends with its refusal. So
   * the transaction that writes a row only has to look at the signal of its request.
   */
  rightsChanged(): void
}
