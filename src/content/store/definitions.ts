/**
 * The cluster definitions of this host, as the content sees them; the root hands it in, since the content may not use the room
 * `definition`.
 */
export interface ContentDefinitions {
  /**
   * Examines the definition in a bundle before that is published.
   * @param order the archive of the definition, and the bundle that it is in; `publishedAt` as in `PublishedDefinition`
   * @throws AppError why the definition, and with it the bundle, is refused
   */
  examineBundled(order: {
    readonly file: string
    readonly sizeBytes: number
    readonly bundle: { readonly uid: string; readonly name: string; readonly publishedAt: number }
    readonly signal: AbortSignal
  }): Promise<ExaminedDefinition>
  /**
   * Called when the content has been opened, and when its bundles may have changed. What is given is known when the call returns.
   * @param bundled all published bundles with a definition, the newest first
   * @returns when what has changed was examined
   */
  bundlesChanged(bundled: readonly PublishedDefinition[]): Promise<void>
}

/** A definition of a bundle that is not published yet. */
export interface ExaminedDefinition {
  /** Puts it into its slot. */
  place(): Promise<void>
  /** Removes what the examination has written, unless it is in a slot. */
  discard(): Promise<void>
}

/** The definition of a published bundle. */
export interface PublishedDefinition {
  readonly bundleUid: string
  /** Name of the bundle. */
  readonly name: string
  /** Milliseconds since 1970, UTC, and more than those of all bundles that were published before. */
  readonly publishedAt: number
  /** The blob; missing while it is damaged. */
  readonly file: string
  readonly sizeBytes: number
}
