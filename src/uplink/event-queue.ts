import { formatTime } from '../base/time.ts'
import { uuidAt } from '../base/uid.ts'
import type { EventEntity } from '../platform/events/schemas.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'

/** Something that happened on this host. */
export interface HostEvent {
  readonly severity: EventEntity['severity']
  /** UpperCamelCase. */
  readonly reason: string
  readonly message: string
  /** The part of this host that reports it, for example `cluster`. */
  readonly component: string
  /** Its subject. */
  readonly involvedObject?: EventEntity['involvedObject']
}

/** Events on their way to the platform: stored until it has them, in a bounded number. */
export interface EventQueue {
  /**
   * Stores an event, as a part of the open transaction if there is one. Where the queue is full the oldest `Normal` event gives way, and
   * without one the oldest. A disk that cannot be written is logged, not thrown; lost events are reported with the next event.
   */
  add(event: HostEvent): void
  /** The oldest events. An event that says how many gave way is put among them first. */
  next(most: number): readonly QueuedEvent[]
  /** The platform has them. */
  remove(events: readonly QueuedEvent[]): void
  counts(): { readonly waiting: number; readonly dropped: number }
}

export interface QueuedEvent {
  readonly number: number
  readonly entity: EventEntity
}

export interface EventQueueOptions {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
  /** Called when there is an event to send. */
  readonly onEvent: () => void
  /** Limit of kept events. */
  readonly kept?: number
}

const mostKept = 10_000
const longest = { message: 2_048, reason: 128, component: 64, kind: 64, name: 256, uid: 64 }

interface Row {
  readonly seq: number
  readonly entity: string
}

export function createEventQueue(options: EventQueueOptions): EventQueue {
  const { database, clock, log, onEvent, kept = mostKept } = options
  const { sql, transaction } = database
  const insert = sql.prepare('INSERT INTO platform_event (at, is_normal, entity) VALUES (?, ?, ?)')
  const oldest = sql.prepare('SELECT seq, entity FROM platform_event ORDER BY seq LIMIT ?')
  const leastNeeded = sql.prepare(
    `SELECT seq, at FROM platform_event WHERE seq =
      coalesce((SELECT min(seq) FROM platform_event WHERE is_normal = 1), (SELECT min(seq) FROM platform_event))`,
  )
  const remove = sql.prepare('DELETE FROM platform_event WHERE seq = ?')
  const readGap = sql.prepare('SELECT count, first_at, last_at FROM platform_event_gap')
  const widenGap = sql.prepare(
    `INSERT INTO platform_event_gap (one, count, first_at, last_at) VALUES (1, 1, :at, :at)
    ON CONFLICT (one) DO UPDATE SET count = count + 1, first_at = min(first_at, :at), last_at = max(last_at, :at)`,
  )
  const closeGap = sql.prepare('DELETE FROM platform_event_gap')
  const all = sql.prepare('SELECT count(*) AS n FROM platform_event')
  const count = () => (all.get() as { n: number }).n
  const gap = () => readGap.get() as { count: number; first_at: number; last_at: number } | undefined

  /** Events that could not be stored. */
  let lost: { readonly count: number; readonly firstAt: number; readonly lastAt: number } | undefined
  let waiting = count()
  let dropped = gap()?.count ?? 0

  function put({ severity, reason, message, component, involvedObject }: HostEvent): void {
    const now = clock.now()
    const entity: EventEntity = {
      ...(involvedObject
        ? {
            involvedObject: {
              kind: (involvedObject.kind ?? '').slice(0, longest.kind),
              name: (involvedObject.name ?? '').slice(0, longest.name),
              uid: (involvedObject.uid ?? '').slice(0, longest.uid),
            },
          }
        : {}),
      message: message.slice(0, longest.message),
      metadata: { creationTimestamp: formatTime(now), uid: uuidAt(now) },
      reason: reason.slice(0, longest.reason),
      severity,
      source: { component: component.slice(0, longest.component) },
    }
    insert.run(now, Number(severity === 'Normal'), JSON.stringify(entity))
    waiting++
  }

  function makeRoom(): void {
    // The count in memory is too high where the transaction of a caller was rolled back.
    if (waiting > kept) recount()
    while (waiting > kept) {
      const { seq, at } = leastNeeded.get() as { seq: number; at: number }
      remove.run(seq)
      widenGap.run({ at })
      waiting--
      dropped++
    }
  }

  const recount = () => {
    waiting = count()
    dropped = gap()?.count ?? 0
  }

  return {
    add(event) {
      try {
        transaction(() => {
          if (lost) put(lostEvent(lost))
          put(event)
          makeRoom()
        })
        lost = undefined
      } catch (error) {
        const now = clock.now()
        lost = { count: (lost?.count ?? 0) + 1, firstAt: lost?.firstAt ?? now, lastAt: now }
        log.warn({ err: error, reason: event.reason }, 'an event for the platform could not be stored')
      }
      onEvent()
    },
    next(most) {
      transaction(() => {
        const found = gap()
        if (!found) return
        closeGap.run()
        put({
          severity: 'Warning',
          reason: 'EventsDropped',
          component: 'platform',
          message: `${found.count} events of this host from ${formatTime(found.first_at)} to ${formatTime(found.last_at)} gave way to newer ones while the platform was not reached`,
        })
      })
      recount()
      return oldest.all(most).map((row) => {
        const { seq, entity } = row as unknown as Row
        return { number: seq, entity: JSON.parse(entity) as EventEntity }
      })
    },
    remove(events) {
      transaction(() => {
        for (const { number } of events) remove.run(number)
      })
      recount()
    },
    counts: () => ({ waiting, dropped }),
  }
}

const lostEvent = (lost: {
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}): HostEvent => ({
  severity: 'Warning',
  reason: 'EventsDropped',
  component: 'platform',
  message: `${lost.count} events of this host from ${formatTime(lost.firstAt)} to ${formatTime(lost.lastAt)} could not be stored, as on a full disk`,
})
