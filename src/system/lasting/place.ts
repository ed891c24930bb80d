/** Where keepers live: as units of systemd, or in sessions of their own. */
export interface Place {
  /**
   * Starts the keeper of a run, on its own behalf: the end of this process is nothing to it.
   * @returns once it was started; it then still has to begin
   * @throws Error why it was not started, for example since one of this name lives
   */
  launch(run: PlacedRun): Promise<void>
  /** Process id of the keeper, 0 where it has none yet; undefined where it does not live. */
  look(run: Pick<PlacedRun, 'name' | 'lock'>): Promise<number | undefined>
  boot(): Promise<Boot>
  /** What to read where a keeper did not begin. */
  advice(name: string): string
}

/** What the host is at: its end is the end of every keeper. */
export interface Boot {
  /** Another one after each boot. */
  readonly id: string
  /** The host goes down. */
  readonly isEnding: boolean
}

export interface PlacedRun {
  readonly name: string
  /** Path of its lock. */
  readonly lock: string
  /** The program of the keeper and its arguments. */
  readonly command: readonly string[]
  /** The command is ended by then. */
  readonly timeoutMs: number
}
