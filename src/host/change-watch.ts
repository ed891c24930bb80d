import type { CommandFollower, Following } from '../system/follower.ts'
import { watchFolders, type FolderWatch } from '../system/folder-watch.ts'
import type { Logger } from '../system/log.ts'

/** Reports changes of a part of the host. */
export interface ChangeWatch {
  start(): void
  stop(): void
  /** While false no change is reported, and the part has to be read from time to time. */
  isWatching(): boolean
}

// A burst of events counts as one change (an interface that comes up causes a dozen), and a host that changes all the
// time is read once a second.
const burstMs = 100
const pauseMs = 1_000
// A service creates its folder before it answers, and takes a moment to notice a change of networkd's files.
const servicePauseMs = 2_000
// From the start of the program until it listens for changes; the program does not report this.
const settleMs = 500

/** A part of the host that can be watched. */
export type WatchedPart = keyof typeof programs | 'services'

/** The watches of all parts. */
export interface ChangeWatches extends Pick<ChangeWatch, 'start' | 'stop'> {
  /** The parts of which no change is reported at the moment. */
  unwatched(): readonly WatchedPart[]
}

export interface ChangeWatchesOptions {
  readonly follower: CommandFollower
  readonly log: Logger
}

/** Programs that write a line when something has changed; the content of the line does not matter. */
const programs = {
  /** Links, addresses and routes, of rtnetlink(7): ip-monitor(8). */
  network: ['ip', '-o', 'monitor', 'link', 'address', 'route'],
  /** The mount table: findmnt(8) is notified by the kernel; a file watch of Node is not. */
  mounts: ['findmnt', '--poll', '--noheadings', '--output', 'ACTION'],
} as const

/**
 * Folders that systemd's services change with their state of the network, with the names that matter there.
 * The folder of timesyncd is not among them: its only file is touched by each answer of a server.
 */
const serviceFolders = new Map([
  ['/run/systemd', /^(netif|resolve|timesync|units)$/],
  ['/run/systemd/netif', /^links$/],
  ['/run/systemd/netif/links', /./],
  ['/run/systemd/resolve', /./],
  // resolved keeps its folder when it stops. systemd keeps a link here for each running unit.
  ['/run/systemd/units', /^invocation:systemd-(resolved|timesyncd)\.service$/],
])

/**
 * Watches a part of the host through a long-lived child. A missing program is tried again from time to time.
 * @param onChange called at most once a second, and after every start of the program
 */
export function createProgramWatch(
  part: keyof typeof programs,
  follower: CommandFollower,
  onChange: () => void,
): ChangeWatch {
  let following: Following | undefined
  let isListening = false
  let settling: NodeJS.Timeout | undefined
  const bursts = createBursts({ onChange, pauseMs })

  return {
    start() {
      const [program, ...args] = programs[part]
      following ??= follower.follow(program, args, {
        onLine: bursts.add,
        onStart() {
          settling = setTimeout(() => {
            isListening = true
            bursts.add()
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
      bursts.stop()
      following?.stop()
      following = undefined
      isListening = false
    },
    isWatching: () => isListening,
  }
}

export interface ServiceWatchOptions {
  readonly log: Logger
  /** Called as soon as something has changed, and again two seconds later, when the service has noticed it too. */
  readonly onChange: () => void
  readonly folders?: ReadonlyMap<string, RegExp>
}

/** Watches the network state of systemd's services, by the folders that they change. */
export function createServiceWatch(options: ServiceWatchOptions): ChangeWatch {
  const { log, onChange, folders = serviceFolders } = options
  const bursts = createBursts({ onChange, pauseMs: servicePauseMs, isRepeated: true })
  let watching: FolderWatch | undefined

  return {
    start() {
      watching ??= watchFolders({ folders, onChange: bursts.add, log })
      bursts.add()
    },
    stop() {
      bursts.stop()
      watching?.stop()
      watching = undefined
    },
    isWatching: () => watching?.isWatching() ?? false,
  }
}

/** Watches all parts of the host. */
export function createChangeWatches(
  { follower, log }: ChangeWatchesOptions,
  onChange: (part: WatchedPart) => void,
): ChangeWatches {
  const byProgram = (part: keyof typeof programs) => createProgramWatch(part, follower, () => onChange(part))
  const watches: Readonly<Record<WatchedPart, ChangeWatch>> = {
    network: byProgram('network'),
    mounts: byProgram('mounts'),
    services: createServiceWatch({ log, onChange: () => onChange('services') }),
  }
  const parts = Object.keys(watches) as WatchedPart[]
  return {
    start: () => parts.forEach((part) => watches[part].start()),
    stop: () => parts.forEach((part) => watches[part].stop()),
    unwatched: () => parts.filter((part) => !watches[part].isWatching()),
  }
}

interface BurstOptions {
  readonly onChange: () => void
  /** Least time from one call to the next. */
  readonly pauseMs: number
  /** Whether another call follows after the pause. */
  readonly isRepeated?: boolean
}

/** Combines a burst of events into one call. */
function createBursts({ onChange, pauseMs, isRepeated = false }: BurstOptions) {
  let pending: NodeJS.Timeout | undefined
  let lastAt = -Infinity
  let isOwed = false

  const call = () => {
    const waitMs = Math.max(burstMs, lastAt + pauseMs - performance.now())
    pending ??= setTimeout(() => {
      pending = undefined
      lastAt = performance.now()
      onChange()
      if (!isOwed) return
      isOwed = false
      call()
    }, waitMs)
  }
  return {
    add() {
      isOwed = isRepeated
      call()
    },
    stop: () => clearTimeout(pending),
  }
}
