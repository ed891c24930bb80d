import { setImmediate } from 'node:timers'
import type { Pending, Trail } from './trail.ts'

/**
 * Writes the records of all requests that end in one turn of the event loop together, so that two hundred simultaneous
 * logins wait for the disk a few times instead of two hundred times: every wait blocks every request.
 */
export interface Batch {
  /**
   * Resolves when the record is on the disk, or the disk cannot be written. A record of the daemon itself from the same
   * turn comes before it.
   * @throws what `writeAll` throws for this record
   */
  add(record: Pending): Promise<void>
  /** Writes all waiting records to the disk at once. */
  flush(): void
}

interface Waiting {
  readonly record: Pending
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export function createBatch({ writeAll }: Pick<Trail, 'writeAll'>): Batch {
  const waiting: Waiting[] = []

  function write(all: readonly Waiting[]): void {
    try {
      writeAll(all.map(({ record }) => record))
    } catch (error) {
      // Nothing was written. One bad record must not prevent the others.
      if (all.length > 1) for (const each of all) write([each])
      else for (const { reject } of all) reject(error)
      return
    }
    for (const { resolve } of all) resolve()
  }

  function flush(): void {
    if (waiting.length > 0) write(waiting.splice(0))
  }

  return {
    add: (record) =>
      new Promise<void>((resolve, reject) => {
        if (waiting.push({ record, resolve, reject }) === 1) setImmediate(flush)
      }),
    flush,
  }
}
