import type { Job } from '../../root/room.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { EdgeHostHealth } from './schemas.ts'
import type { HostRecord } from './store.ts'

/** The heartbeats of hosts. */
export interface Heartbeats {
  /** Keeps the heartbeat of a host; it is in the database within a second. */
  beat(uid: string, health: EdgeHostHealth): void
  /** Whether the host has sent a heartbeat since the start of the platform, and not been silent since. */
  isHeard(uid: string): boolean
  /** Finds hosts that are silent. */
  readonly job: Job
  /** Writes the heartbeats not yet in the database. */
  stop(): void
}

export interface HeartbeatsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
}

const commitMs = 1_000
const silenceMs = 180_000
const silence = 'no heartbeat for three minutes'

/** Whether a host answers, and its last heartbeat. */
export interface Silence {
  readonly isSilent: boolean
  /** Not silent, and not heard since the start of the platform either: whether it answers is not known yet. */
  readonly isUnknown: boolean
  /** Time of its last heartbeat, milliseconds since 1970; undefined before the first one. */
  readonly lastSeen: number | undefined
}

/**
 * Whether a host is silent; one that has never been seen is so three minutes after its registration. Pure.
 * @param isHeard since the start of the platform: what was stored before, or came with a backup, does not say that it answers now
 */
export function silenceOf(
  host: Pick<HostRecord, 'health' | 'createdAt'> | undefined,
  now: number,
  isHeard: boolean,
): Silence {
  if (!host) return { isSilent: true, isUnknown: false, lastSeen: undefined }
  const { health, createdAt } = host
  // A host that is seen may be unhealthy too.
  const isSilent = health
    ? health.state === 'unhealthy' && health.message === silence
    : now - createdAt > silenceMs
  return { isSilent, isUnknown: !isSilent && !isHeard, lastSeen: health?.at }
}

/**
 * Keeps heartbeats in memory and writes them in one commit a second, since a commit for each would wear out a disk. A host without a
 * heartbeat for three minutes becomes unhealthy. The time is counted by the monotonic clock from the start of the platform on, so that
 * neither a clock that is set nor a platform that was switched off makes a host silent.
 */
export function createHeartbeats({ database, clock, log }: HeartbeatsOptions): Heartbeats {
  const { sql, transaction } = database
  const startedAt = clock.monotonic()
  const write = sql.prepare(
    'UPDATE edge_host SET seen_at = ?, health_message = ?, agent_version = ? WHERE uid = ?',
  )
  // It is a part of the index of the list, which is written anew only where it changes.
  const writeState = sql.prepare('UPDATE edge_host SET health_state = ? WHERE uid = ? AND health_state <> ?')
  const mark = sql.prepare(
    "UPDATE edge_host SET health_state = 'unhealthy', health_message = ? WHERE uid = ?",
  )
  const seen = sql.prepare('SELECT uid FROM edge_host WHERE seen_at > 0')
  /** The last heartbeat of each host since the start, by the monotonic clock; the oldest first. */
  const beats = new Map<string, number>()
  const unwritten = new Map<string, { readonly at: number; readonly health: EdgeHostHealth }>()
  let timer: NodeJS.Timeout | undefined
  let isFailing = false
  let isFirst = true

  function flush(): void {
    timer = undefined
    try {
      transaction(() => {
        for (const [uid, { at, health }] of unwritten) {
          write.run(at, health.message ?? '', health.agentVersion ?? '', uid)
          writeState.run(health.state, uid, health.state)
        }
      })
      unwritten.clear()
      if (isFailing) log.info('heartbeats are written again')
      isFailing = false
    } catch (error) {
      if (!isFailing) log.error({ err: error }, 'heartbeats cannot be written; they are kept and tried again')
      isFailing = true
      timer = setTimeout(flush, commitMs)
    }
  }

  /** Hosts whose last heartbeat is too old. At the first call, also hosts that were seen before this start and not since. */
  function silent(): string[] {
    const since = clock.monotonic() - silenceMs
    const found = isFirst
      ? seen.all().flatMap(({ uid }) => (beats.has(uid as string) ? [] : [uid as string]))
      : []
    for (const [uid, at] of beats) {
      if (at > since) break
      found.push(uid)
    }
    return found
  }

  return {
    beat(uid, health) {
      // Put at the end, so that the oldest one stays the first.
      beats.delete(uid)
      beats.set(uid, clock.monotonic())
      unwritten.set(uid, { at: clock.now(), health })
      timer ??= setTimeout(flush, commitMs)
    },
    isHeard: (uid) => beats.has(uid),
    job: {
      name: 'silent-hosts',
      schedule: '*/10 * * * * *',
      stuckAfterMs: 60_000,
      run() {
        if (clock.monotonic() - startedAt < silenceMs) return
        const uids = silent()
        if (uids.length > 0)
          transaction(() => {
            for (const uid of uids) mark.run(silence, uid)
          })
        for (const uid of uids) beats.delete(uid)
        isFirst = false
      },
    },
    stop() {
      clearTimeout(timer)
      if (unwritten.size > 0) flush()
      clearTimeout(timer)
    },
  }
}

// Hosts send a heartbeat each minute, at a random second: at most two minutes lie between two.
const idleMs = 150_000

/** The connections that the port keeps open between two heartbeats: one of each host that is logged in, up to a maximum. */
export const keptHosts = (maximum: number) => ({
  maximum,
  idleMs,
  isFor: ({ kind }: { readonly kind?: string | undefined }) => kind === 'host',
})
