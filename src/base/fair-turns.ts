import { createFairQueue, type Waiter } from './fair-queue.ts'

/** A bounded number of pieces of work at once; those that wait take turns by group and member. */
export interface FairTurns {
  /**
   * @param signal ends the waiting; the work has to end by itself
   * @throws what `refusal` makes, for the waiter that `FairQueue` rejects; the reason of the signal
   */
  run<T>(waiter: Waiter, work: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

export interface FairTurnsOptions {
  readonly atOnce: number
  /** Most pieces of one group at once; by default as many as of all. */
  readonly ofGroup?: number
  /** Most pieces that wait. */
  readonly waiting: number
  readonly refusal: () => Error
}

export function createFairTurns({ atOnce, ofGroup = atOnce, waiting, refusal }: FairTurnsOptions): FairTurns {
  const queue = createFairQueue<Waiter & PromiseWithResolvers<undefined>>(waiting)
  let running = 0

  return {
    async run(waiter, work, signal) {
      signal?.throwIfAborted()
      if (running >= atOnce || queue.turnsOf(waiter.group) >= ofGroup) {
        const turn = { ...waiter, ...Promise.withResolvers<undefined>() }
        const leave = () => {
          if (queue.remove(turn)) turn.reject(signal?.reason)
        }
        queue.add(turn)?.reject(refusal())
        signal?.addEventListener('abort', leave)
        try {
          await turn.promise
        } finally {
          signal?.removeEventListener('abort', leave)
        }
      } else {
        running += 1
        queue.begin(waiter)
      }
      try {
        return await work()
      } finally {
        // The place goes to the next one, of the same group where all others have theirs.
        const next = queue.next(ofGroup, waiter)
        queue.end(waiter)
        if (next) next.resolve(undefined)
        else running -= 1
      }
    },
  }
}
