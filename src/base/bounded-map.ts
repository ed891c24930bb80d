/**
 * A map with a maximum size, whose keys clients may choose. When it is full, a new entry replaces the entry of least
 * worth. Each `set` also checks two entries and removes those that are worth nothing, so that entries left by a flood
 * do not stay. All times are milliseconds of one clock.
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
  /**
   * What the loss of an entry would cost: 0 for nothing, Infinity for an entry that must stay, even beyond the maximum.
   */
  readonly worth: (value: Value, now: number) => number
  /** How many entries are compared when the map is full; all by default. Set it where each request may add an entry. */
  readonly compared?: number
}

const swept = 2

export function createBoundedMap<Value>(options: BoundedMapOptions<Value>): BoundedMap<Value> {
  const { maximum, worth, compared = Infinity } = options
  const entries = new Map<string, Value>()
  // Continues where the last sweep ended, and starts over at the end.
  let cursor = entries.entries()

  /**
   * Checks the next entries and drops those that are worth nothing. Returns the key of the entry of least worth among
   * the rest.
   */
  function sweep(count: number, now: number): string | undefined {
    let found: string | undefined
    let least = Infinity
    for (let checked = 0; checked < count; checked += 1) {
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
