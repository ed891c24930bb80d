/** Work that never overlaps with itself, and that several callers share. */
export interface SharedRun<Result> {
  /**
   * Runs the work. Callers that ask during a run share the next one, since the run under way may have started before the change
   * that they want to see.
   */
  run(): Promise<Result>
  isRunning(): boolean
  /** Waits for the run under way and the next one, if callers wait for it. */
  ended(): Promise<void>
}

/** @param work handles its own errors; one that it throws reaches the callers of that run */
export function createSharedRun<Result>(work: () => Promise<Result>): SharedRun<Result> {
  let running: Promise<Result> | undefined
  let next: Promise<Result> | undefined

  const start = () => {
    running = work().finally(() => (running = undefined))
    return running
  }
  const startNext = () => {
    next = undefined
    return start()
  }
  return {
    run: () => (running === undefined ? start() : (next ??= running.then(startNext, startNext))),
    isRunning: () => running !== undefined,
    async ended() {
      await (next ?? running)
    },
  }
}
