/** How keepers run: as units of systemd, or in sessions of their own. */
export interface Place {
  /**
   * Starts the keeper of a run, independent of this process: the keeper outlives it.
   * @returns once the keeper is started; its command is not started yet
   * @throws Error why the keeper was not started, for example because one of this name runs
   */
  launch(run: PlacedRun): Promise<void>
  /** Process id of the keeper, 0 where it is not known yet; undefined where no keeper runs. */
  findKeeper(run: Pick<PlacedRun, 'name' | 'lock'>): Promise<number | undefined>
  /** The id of the present boot of the host, which is different after each boot: its end is the end of every keeper. */
  bootId(): Promise<string>
  /** Whether the host is shutting down. */
  isEnding(): Promise<boolean>
  /** How an operator finds out why a keeper did not begin or end. */
  advice(name: string): string
}

export interface PlacedRun {
  readonly name: string
  /** Path of the run's lock file. */
  readonly lock: string
  /** The program of the keeper and its arguments. */
  readonly command: readonly string[]
  /** Time limit of the command; the keeper ends it then. */
  readonly timeoutMs: number
}
