import { setImmediate } from 'node:timers'
import type { Pending, Trail } from './trail.ts'

/**
 * Writes the records of all requests that end in one turn of the event loop together, so that two hundred logins at
 * once wait for the disk a few times instead of two hundred: every wait holds up every request.
 */
export interface Batch {
  /**
   * Done when the record, or else the intent that it has, is on the disk, or nobody can write there. A record of the
   * daemon itself, from the same turn, comes before it.
   * @throws what `writeAll` throws for this record
   */
  add(record: Pending): Promise<void>
  /** Takes away an intent of which no record comes; soon. */
  forget(uid: string): void
  /** Brings everything to the disk, at once. */
  flush(): void
}

interface Waiting {
  readonly record: Pending
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const retryMs = 1_000

export function createBatch({
  writeAll,
  forget,
  settle,
}: Pick<Trail, 'writeAll' | 'forget' | 'settle'>): Batch {
  const waiting: Waiting[] = []
  let turn: NodeJS.Immediate | undefined
  let nextTurn: NodeJS.Immediate | undefined
  let retry: NodeJS.Timeout | undefined

  function write(all: readonly Waiting[]): void {
    try {
      writeAll(all.map(({ record }) => record))
    } catch (error) {
      // Nothing was written. What is wrong with one must not be the end of the others.
      if (all.length > 1) for (const each of all) write([each])
      else for (const { reject } of all) reject(error)
      return
    }
    for (const { resolve } of all) resolve()
  }

  function endTurn(): void {
    write(waiting.splice(0))
    settleSoon()
  }

  // The replies are on their way by then.
  function settleSoon(): void {
    clearImmediate(nextTurn)
    nextTurn = setImmediate(settleAll)
  }

  function settleAll(): void {
    clearTimeout(retry)
    if (!settle()) retry = setTimeout(settleAll, retryMs).unref()
  }

  return {
    add: (record) =>
      new Promise<void>((resolve, reject) => {
        if (waiting.push({ record, resolve, reject }) === 1) turn = setImmediate(endTurn)
      }),
    forget(uid) {
      forget(uid)
      settleSoon()
    },
    flush() {
      for (const each of [turn, nextTurn]) clearImmediate(each)
      clearTimeout(retry)
      if (waiting.length > 0) write(waiting.splice(0))
      settle()
    },
  }
}
