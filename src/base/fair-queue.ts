/** The owner of a place in the queue; decides the order. */
export interface Waiter {
  /** A network, or a client alone; groups take turns. */
  readonly group: string
  /** The members of a group take turns within it. */
  readonly member: string
}

/**
 * A queue of bounded length in which groups take turns, and within each group its members. A member that sends a
 * thousand requests is served as often as one that sends one.
 */
export interface FairQueue<W extends Waiter> {
  /**
   * Adds a waiter.
   * @returns the waiter to reject when the queue is full: the last one of the group, and within it of the member, that
   * has the most waiters; the new one itself when no group has more
   */
  add(waiter: W): W | undefined
  /** Removes a waiter that waits no longer. @returns whether it was still in the queue */
  remove(waiter: W): boolean
  /**
   * Removes and returns the next waiter; its turn begins.
   * @param ofGroup groups with so many turns have to wait
   * @param ending former owner of the place: its turn counts for the order, and not for that number
   */
  next(ofGroup?: number, ending?: Waiter): W | undefined
  /** Starts the turn of one that need not wait. A group that has a turn comes after those that have none, and so within each group. */
  begin(waiter: Waiter): void
  /** Ends a turn, after `next` where its place goes to another. */
  end(waiter: Waiter): void
  /** Running turns of a group. */
  turnsOf(group: string): number
  readonly size: number
}

export function createFairQueue<W extends Waiter>(maximum: number): FairQueue<W> {
  // Maps keep the order of insertion: a served group or member moves to the end.
  const groups = new Map<string, Map<string, W[]>>()
  // Running turns of groups, and of members beside the name of their group.
  const running = new Map<string, number>()
  let size = 0

  const turnsOf = (group: string) => running.get(group) ?? 0

  function count(waiter: Waiter, change: 1 | -1): void {
    for (const key of [waiter.group, memberKey(waiter.group, waiter.member)]) {
      const now = (running.get(key) ?? 0) + change
      if (now > 0) running.set(key, now)
      else running.delete(key)
    }
  }

  function put(waiter: W): void {
    const members = groups.get(waiter.group) ?? new Map<string, W[]>()
    const waiting = members.get(waiter.member) ?? []
    waiting.push(waiter)
    members.set(waiter.member, waiting)
    groups.set(waiter.group, members)
    size += 1
  }

  /** Removes the first or last waiter of a member; after a turn, group and member move to the end. */
  function take(group: string, member: string, which: 'shift' | 'pop'): W | undefined {
    const members = groups.get(group)
    const waiting = members?.get(member)
    const taken = waiting?.[which]()
    if (!members || !waiting || !taken) return undefined
    size -= 1
    if (which === 'shift' || waiting.length === 0) members.delete(member)
    if (waiting.length > 0) members.set(member, waiting)
    if (which === 'shift' || members.size === 0) groups.delete(group)
    if (members.size > 0) groups.set(group, members)
    return taken
  }

  return {
    remove(waiter) {
      const members = groups.get(waiter.group)
      const waiting = members?.get(waiter.member)
      const at = waiting?.indexOf(waiter) ?? -1
      if (!members || !waiting || at < 0) return false
      waiting.splice(at, 1)
      size -= 1
      if (waiting.length === 0) members.delete(waiter.member)
      if (members.size === 0) groups.delete(waiter.group)
      return true
    },
    add(waiter) {
      put(waiter)
      if (size <= maximum) return undefined
      const group = fullest(groups, waiter.group, (members) => sum(members.values()))
      const members = groups.get(group) ?? new Map<string, W[]>()
      const member = fullest(members, waiter.member, (waiting) => waiting.length)
      return take(group, member, 'pop')
    },
    next(ofGroup = Infinity, ending) {
      const group = least(groups.keys(), turnsOf)
      if (group === undefined || turnsOf(group) - Number(ending?.group === group) >= ofGroup) return undefined
      const members = groups.get(group)?.keys() ?? []
      const member = least(members, (each) => running.get(memberKey(group, each)) ?? 0)
      const taken = member === undefined ? undefined : take(group, member, 'shift')
      if (taken) count(taken, 1)
      return taken
    },
    turnsOf,
    begin(waiter) {
      count(waiter, 1)
    },
    end(waiter) {
      count(waiter, -1)
    },
    get size() {
      return size
    },
  }
}

const memberKey = (group: string, member: string) => JSON.stringify([group, member])

/** The first of the keys with the least of a number. */
function least(keys: Iterable<string>, numberOf: (key: string) => number): string | undefined {
  let found: string | undefined
  let fewest = Infinity
  for (const key of keys) {
    const number = numberOf(key)
    if (number < fewest) [found, fewest] = [key, number]
    if (fewest === 0) break
  }
  return found
}

/**
 * The key of the largest entry; among equal ones the key of the new waiter if it is one of them, otherwise the last.
 */
function fullest<T>(all: ReadonlyMap<string, T>, own: string, sizeOf: (each: T) => number): string {
  const mine = all.get(own)
  let [found, most] = [own, mine === undefined ? 0 : sizeOf(mine)]
  for (const [key, each] of all) {
    const size = sizeOf(each)
    if (size > most || (size === most && found !== own)) [found, most] = [key, size]
  }
  return found
}

const sum = (waiting: Iterable<readonly unknown[]>) =>
  [...waiting].reduce((all, { length }) => all + length, 0)

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
