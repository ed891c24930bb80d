/** How fast bytes arrive, over the last half minute at most. */
export interface Pace {
  add(bytes: number): void
  /** Seconds until so many more bytes have arrived; undefined while the pace is not known. */
  secondsFor(bytes: number): number | undefined
}

const windowMs = 15_000
const leastMs = 1_000

/** @param monotonic milliseconds */
export function createPace(monotonic: () => number): Pace {
  // The window before, whole, and the one that is being filled.
  let last = { bytes: 0, ms: 0 }
  let bytes = 0
  let since = monotonic()

  function roll(): number {
    const now = monotonic()
    const ms = now - since
    if (ms < windowMs) return ms
    // After a pause the window before says nothing any more.
    last = ms < 2 * windowMs ? { bytes, ms } : { bytes: 0, ms: windowMs }
    bytes = 0
    since = now
    return 0
  }

  return {
    add(more) {
      roll()
      bytes += more
    },
    secondsFor(wanted) {
      const ms = last.ms + roll()
      const arrived = last.bytes + bytes
      return ms < leastMs || arrived === 0 ? undefined : Math.ceil((wanted * ms) / arrived / 1_000)
    },
  }
}
