import type { Logger } from '../system/log.ts'

/** How soon a fact is read again: within minutes or seconds. What never changes is read once, at the start. */
export type RefreshClass = 'minutes' | 'seconds'

/** Something known about the host, with what is needed to know it anew. */
export interface Fact<T> {
  readonly name: string
  readonly refreshClass: RefreshClass
  /** The last value that could be read; undefined before the first. */
  value(): T | undefined
  /** Why the last try failed; undefined when it did not. */
  failure(): string | undefined
  /** Reads the fact. Never throws: a failed try keeps the last value. */
  refresh(): Promise<void>
}

/**
 * A fact that `read` knows how to read. A failure is logged once, and so is its end. A reader that takes
 * longer than `deadlineMs` counts as failed and is left alone: it is not started again while it hangs.
 */
export function createFact<T>(options: {
  readonly name: string
  readonly refreshClass: RefreshClass
  readonly read: () => Promise<T>
  readonly deadlineMs: number
  readonly log: Logger
}): Fact<T> {
  const { name, refreshClass, read, deadlineMs, log } = options
  let value: T | undefined
  let failure: string | undefined
  let pending: Promise<void> | undefined

  const succeeded = (read: T) => {
    value = read
    if (failure !== undefined) log.info({ fact: name }, 'a fact of the host can be read again')
    failure = undefined
  }
  const failed = (error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    if (failure === undefined) log.warn({ fact: name, err: error }, 'a fact of the host cannot be read')
    failure = reason
  }

  return {
    name,
    refreshClass,
    value: () => value,
    failure: () => failure,
    async refresh() {
      pending ??= read()
        .then(succeeded, failed)
        .finally(() => (pending = undefined))
      const deadline = Promise.withResolvers<'late'>()
      const timer = setTimeout(() => deadline.resolve('late'), deadlineMs)
      if ((await Promise.race([pending, deadline.promise])) === 'late') {
        failed(new Error(`no answer within ${deadlineMs} ms`))
      }
      clearTimeout(timer)
    },
  }
}
