import { createSharedRun } from '../base/shared-run.ts'
import type { Logger } from '../system/log.ts'

/** Values of another source, used where neither the kernel's files nor NVIDIA's driver have one. */
export interface Supplement {
  /** The maker of a disk, by the kernel's name for it and its size in whole GiB. */
  diskVendor(name: string, size: number): string | undefined
  /** A display controller, by its PCI address such as `0000:11:00.0`. */
  display(address: string): DisplaySupplement | undefined
}

interface DisplaySupplement {
  readonly vendor?: string
  readonly model?: string
  readonly memoryMiB?: number
}

/**
 * When a fact is read again: never once it is known, every few minutes, every few seconds, or on a change of the network,
 * of the mount table, or of the network state of systemd's services.
 */
export type RefreshClass = 'never' | 'minutes' | 'seconds' | 'network' | 'mounts' | 'services'

/** A fact of the host: its last value, and how to read it again. */
export interface Fact<T> {
  readonly name: string
  readonly refreshClass: RefreshClass
  /** The last value that could be read; undefined before the first. */
  value(): T | undefined
  /** Why the last reading, or parts of it, failed; empty when all was read. */
  failures(): readonly string[]
  /** Figures of the last reading. */
  reading(): FactReading
  /** Reads the fact. Never throws: after a failure the last value is kept. */
  refresh(): Promise<void>
}

/** Figures of a fact's readings. */
export interface FactReading {
  readonly name: string
  readonly refreshClass: RefreshClass
  /** Time since the value was read; undefined before the first. */
  readonly ageMs: number | undefined
  /** Duration of the last completed reading; undefined before the first. */
  readonly durationMs: number | undefined
  /** The last reading, or a part of it, failed. */
  readonly isFailing: boolean
}

export interface FactOptions<T> {
  readonly name: string
  readonly refreshClass: RefreshClass
  readonly read: () => Promise<T>
  /** The parts of a value that could not be read, one line each. */
  readonly problemsOf?: (value: T) => readonly string[]
  readonly deadlineMs: number
  readonly log: Logger
  /** Monotonic milliseconds. */
  readonly monotonic?: () => number
}

/**
 * A fact that `read` reads. Callers that ask during a reading share the next one, since the reading under way may have
 * started before the change that they want to see. A failure is logged once, and so is its end. A reading that takes longer
 * than `deadlineMs` counts as failed: it is not waited for again, and no second one is started while it hangs.
 */
export function createFact<T>(options: FactOptions<T>): Fact<T> {
  const { name, refreshClass, read, problemsOf, deadlineMs, log } = options
  const { monotonic = () => performance.now() } = options
  let value: T | undefined
  let failures: readonly string[] = []
  let isLate = false
  let readAt: number | undefined
  let durationMs: number | undefined

  const note = (now: readonly string[], error?: unknown) => {
    if (now.length > 0 && failures.length === 0) {
      const why = error === undefined ? { problems: now } : { err: error }
      log.warn({ fact: name, ...why }, 'a fact of the host cannot be read')
    } else if (now.length === 0 && failures.length > 0) {
      log.info({ fact: name }, 'a fact of the host can be read again')
    }
    failures = now
  }
  const succeeded = (read: T) => {
    value = read
    readAt = monotonic()
    note(problemsOf?.(read) ?? [])
  }
  const failed = (error: unknown) => note([error instanceof Error ? error.message : String(error)], error)

  const readings = createSharedRun(async () => {
    const startedAt = monotonic()
    try {
      await read().then(succeeded, failed)
    } finally {
      durationMs = monotonic() - startedAt
      isLate = false
    }
  })

  return {
    name,
    refreshClass,
    value: () => value,
    failures: () =>
      readings.isRunning() && value === undefined && failures.length === 0 ? ['no answer yet'] : failures,
    reading: () => ({
      name,
      refreshClass,
      ageMs: readAt === undefined ? undefined : monotonic() - readAt,
      durationMs,
      isFailing: failures.length > 0,
    }),
    async refresh() {
      if (isLate) return
      const deadline = Promise.withResolvers<'late'>()
      const timer = setTimeout(() => deadline.resolve('late'), deadlineMs)
      const end = await Promise.race([readings.run(), deadline.promise])
      clearTimeout(timer)
      if (end !== 'late') return
      isLate = true
      failed(new Error(`no answer within ${deadlineMs} ms`))
    },
  }
}
