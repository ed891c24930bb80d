/** Runs work once all earlier work has ended, successfully or not; returns its result. */
export type Serialize = <T>(work: () => Promise<T>) => Promise<T>

/** For work on one resource that must not overlap, for example on a file and its copy in memory. */
export function serialize(): Serialize {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
}
