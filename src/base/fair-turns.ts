import { createFairQueue, type Waiter } from './fair-queue.ts'

/** A bounded number of pieces of work at once; those that wait take turns by group and member. */
export interface FairTurns {
  /** @throws what `refusal` makes, for the waiter that `FairQueue` rejects */
  run<T>(waiter: Waiter, work: () => Promise<T>): Promise<T>
}

export interface FairTurnsOptions {
  readonly atOnce: number
  /** How many may wait. */
  readonly waiting: number
  readonly refusal: () => Error
}

export function createFairTurns({ atOnce, waiting, refusal }: FairTurnsOptions): FairTurns {
  const queue = createFairQueue<Waiter & PromiseWithResolvers<undefined>>(waiting)
  let running = 0

  return {
    async run(waiter, work) {
      if (running >= atOnce) {
        const turn = { ...waiter, ...Promise.withResolvers<undefined>() }
        queue.add(turn)?.reject(refusal())
        await turn.promise
      } else running += 1
      try {
        return await work()
      } finally {
        const next = queue.next()
        // The place goes to the next one.
        if (next) next.resolve(undefined)
        else running -= 1
      }
    },
  }
}
