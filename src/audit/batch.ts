import { setImmediate } from 'node:timers'
import type { Pending, Trail } from './trail.ts'

/**
 * Writes the records of all requests that end in one turn of the event loop together, so that two hundred logins at
 * once wait for the disk a few times instead of two hundred: every wait holds up every request.
 */
export interface Batch {
  /** Done when the record is on the disk, or nobody can write it. */
  add(record: Pending): Promise<unknown>
  /** Writes what is waiting, at once. */
  flush(): void
}

export function createBatch({ writeAll }: Pick<Trail, 'writeAll'>): Batch {
  let waiting: Pending[] = []
  let written = Promise.withResolvers<undefined>()
  let turn: NodeJS.Immediate | undefined

  function flush(): void {
    if (waiting.length === 0) return
    clearImmediate(turn)
    const [all, { resolve, reject }] = [waiting, written]
    waiting = []
    written = Promise.withResolvers()
    try {
      writeAll(all)
      resolve(undefined)
    } catch (error) {
      reject(error)
    }
  }

  return {
    add(record) {
      if (waiting.push(record) === 1) turn = setImmediate(flush)
      return written.promise
    },
    flush,
  }
}
