import type { CommandFollower, Following } from '../../system/follower.ts'

/** Tells when links, addresses or routes change. */
export interface NetworkWatch {
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

/**
 * Watches netlink (rtnetlink(7)) through a long-lived `ip monitor`, ip-monitor(8). Where that program is not there
 * it is tried again from time to time.
 * @param onChange called at most once a second, and after every start of the program
 */
export function createNetworkWatch(follower: CommandFollower, onChange: () => void): NetworkWatch {
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
      following ??= follower.follow('ip', ['-o', 'monitor', 'link', 'address', 'route'], {
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
