/**
 * A map with room for so many entries, whose keys clients may choose. Where a new entry has none, the one of least worth
 * gives way. Two entries are looked at with each `set`, and go where they are worth nothing: what a flood leaves behind
 * does not stay. All times are of one clock, milliseconds.
 */
export interface BoundedMap<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value, now: number): void
  delete(key: string): void
  entries(): MapIterator<[key: string, value: Value]>
  readonly size: number
}

export interface BoundedMapOptions<Value> {
  readonly maximum: number
  /** What would be lost with an entry: 0 for nothing, Infinity where it has to stay, even beyond the maximum. */
  readonly worth: (value: Value, now: number) => number
  /** So many are compared where there is no room, else all: for one that changes with each request. */
  readonly compared?: number
}

const swept = 2

export function createBoundedMap<Value>(options: BoundedMapOptions<Value>): BoundedMap<Value> {
  const { maximum, worth, compared = Infinity } = options
  const entries = new Map<string, Value>()
  // Goes round and round.
  let cursor = entries.entries()

  /** Drops those of the next entries that are worth nothing. Gives the key of the least of the others. */
  function sweep(count: number, now: number): string | undefined {
    let found: string | undefined
    let least = Infinity
    for (let looked = 0; looked < count; looked += 1) {
      let next = cursor.next()
      if (next.done) {
        cursor = entries.entries()
        next = cursor.next()
      }
      if (next.done) return found
      const [key, value] = next.value
      const own = worth(value, now)
      if (own === 0) entries.delete(key)
      else if (own < least) [found, least] = [key, own]
    }
    return found
  }

  return {
    get: (key) => entries.get(key),
    set(key, value, now) {
      sweep(swept, now)
      if (!entries.has(key) && entries.size >= maximum) {
        const victim = sweep(Math.min(compared, entries.size), now)
        if (victim !== undefined && entries.size >= maximum) entries.delete(victim)
      }
      entries.set(key, value)
    },
    delete: (key) => void entries.delete(key),
    entries: () => entries.entries(),
    get size() {
      return entries.size
    },
  }
}
