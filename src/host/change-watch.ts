import type { CommandFollower, Following } from '../system/follower.ts'

/** Tells when something of the host changes. */
export interface ChangeWatch {
  start(): void
  stop(): void
  /** While false nobody tells, and somebody has to look. */
  isWatching(): boolean
}

// A burst (an interface that comes up is a dozen events) is one change, and a host that changes all the time
// is looked at once a second.
const burstMs = 100
const pauseMs = 1_000
// From the start of the program until it listens; it does not say when.
const settleMs = 500

/** A part of the host that can be watched. */
export type WatchedPart = keyof typeof watchers

/** The watches of all parts. */
export interface ChangeWatches extends Pick<ChangeWatch, 'start' | 'stop'> {
  /** The parts of which nobody tells at the moment. */
  unwatched(): readonly WatchedPart[]
}

/** Programs that say on standard output when something has changed; what they say does not matter. */
const watchers = {
  /** Links, addresses and routes, of rtnetlink(7): ip-monitor(8). */
  network: ['ip', '-o', 'monitor', 'link', 'address', 'route'],
  /** The mount table: findmnt(8) gets the kernel's word for it, which a file watch of Node does not. */
  mounts: ['findmnt', '--poll', '--noheadings', '--output', 'ACTION'],
} as const

/**
 * Watches a part of the host through a long-lived child. Where its program is not there it is tried again from time
 * to time.
 * @param onChange called at most once a second, and after every start of the program
 */
export function createChangeWatch(
  part: WatchedPart,
  follower: CommandFollower,
  onChange: () => void,
): ChangeWatch {
  let following: Following | undefined
  let isListening = false
  let settling: NodeJS.Timeout | undefined
  let pending: NodeJS.Timeout | undefined
  let lastAt = -Infinity

  const announce = () => {
    if (pending !== undefined) return
    const waitMs = Math.max(burstMs, lastAt + pauseMs - performance.now())
    pending = setTimeout(() => {
      pending = undefined
      lastAt = performance.now()
      onChange()
    }, waitMs)
  }

  return {
    start() {
      const [program, ...args] = watchers[part]
      following ??= follower.follow(program, args, {
        onLine: announce,
        onStart() {
          settling = setTimeout(() => {
            isListening = true
            announce()
          }, settleMs)
        },
        onEnd() {
          clearTimeout(settling)
          isListening = false
        },
      })
    },
    stop() {
      clearTimeout(settling)
      clearTimeout(pending)
      following?.stop()
      following = undefined
      isListening = false
    },
    isWatching: () => isListening,
  }
}

/** Watches everything that can be watched. */
export function createChangeWatches(
  follower: CommandFollower,
  onChange: (part: WatchedPart) => void,
): ChangeWatches {
  const parts = Object.keys(watchers) as WatchedPart[]
  const watches = parts.map((part) => ({ part, ...createChangeWatch(part, follower, () => onChange(part)) }))
  return {
    start: () => watches.forEach((watch) => watch.start()),
    stop: () => watches.forEach((watch) => watch.stop()),
    unwatched: () => watches.filter((watch) => !watch.isWatching()).map(({ part }) => part),
  }
}
