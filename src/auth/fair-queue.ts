/** Who waits, for the order in which they are served. */
export interface Waiter {
  /** Shares its turns: a network, or a client alone. */
  readonly group: string
  /** Shares the turns of its group. */
  readonly member: string
}

/**
 * A queue of bounded length in which groups take turns, and in each group its members. One that sends a thousand is
 * served as often as one that sends one.
 */
export interface FairQueue<W extends Waiter> {
  /**
   * Takes one in.
   * @returns who has to go for it where the queue is full: the last of the group, and there of the member, that has
   *   most waiting; the new one itself where no group has more
   */
  add(waiter: W): W | undefined
  /** Takes out whose turn it is. */
  next(): W | undefined
  readonly size: number
}

export function createFairQueue<W extends Waiter>(maximum: number): FairQueue<W> {
  // Maps keep the order of insertion: who was served goes to the end.
  const groups = new Map<string, Map<string, W[]>>()
  let size = 0

  function put(waiter: W): void {
    const members = groups.get(waiter.group) ?? new Map<string, W[]>()
    const waiting = members.get(waiter.member) ?? []
    waiting.push(waiter)
    members.set(waiter.member, waiting)
    groups.set(waiter.group, members)
    size += 1
  }

  /** Takes the first or last one of a member out, and lets group and member stand behind the others after a turn. */
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
    add(waiter) {
      put(waiter)
      if (size <= maximum) return undefined
      const group = fullest(groups, waiter.group, (members) => sum(members.values()))
      const members = groups.get(group) ?? new Map<string, W[]>()
      const member = fullest(members, waiter.member, (waiting) => waiting.length)
      return take(group, member, 'pop')
    },
    next() {
      const [group, members] = groups.entries().next().value ?? []
      const member = members?.keys().next().value
      return group === undefined || member === undefined ? undefined : take(group, member, 'shift')
    },
    get size() {
      return size
    },
  }
}

/** The key of the largest; where several are, that of the new one if it is among them, else the last. */
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
