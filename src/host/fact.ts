import type { Logger } from '../system/log.ts'

/**
 * When a fact is read again: never once it is known, every few minutes, every few seconds, or when the network
 * changes.
 */
export type RefreshClass = 'never' | 'minutes' | 'seconds' | 'network'

/** Something known about the host, with what is needed to know it anew. */
export interface Fact<T> {
  readonly name: string
  readonly refreshClass: RefreshClass
  /** The last value that could be read; undefined before the first. */
  value(): T | undefined
  /** Why the last try failed, or what of it; empty when all is well. */
  failures(): readonly string[]
  /** Reads the fact. Never throws: a failed try keeps the last value. */
  refresh(): Promise<void>
}

export interface FactOptions<T> {
  readonly name: string
  readonly refreshClass: RefreshClass
  readonly read: () => Promise<T>
  /** What a value says about parts of it that could not be read. */
  readonly problemsOf?: (value: T) => readonly string[]
  readonly deadlineMs: number
  readonly log: Logger
}

/**
 * A fact that `read` knows how to read. A failure is logged once, and so is its end. A reader that takes
 * longer than `deadlineMs` counts as failed and is left alone: it is not started again while it hangs.
 */
export function createFact<T>(options: FactOptions<T>): Fact<T> {
  const { name, refreshClass, read, problemsOf, deadlineMs, log } = options
  let value: T | undefined
  let failures: readonly string[] = []
  let pending: Promise<void> | undefined

  const note = (next: readonly string[], error?: unknown) => {
    if (next.length > 0 && failures.length === 0) {
      log.warn(
        { fact: name, ...(error ? { err: error } : { problems: next }) },
        'a fact of the host cannot be read',
      )
    } else if (next.length === 0 && failures.length > 0) {
      log.info({ fact: name }, 'a fact of the host can be read again')
    }
    failures = next
  }
  const succeeded = (read: T) => {
    value = read
    note(problemsOf?.(read) ?? [])
  }
  const failed = (error: unknown) => note([error instanceof Error ? error.message : String(error)], error)

  return {
    name,
    refreshClass,
    value: () => value,
    failures: () => failures,
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
