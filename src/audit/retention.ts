import { setImmediate as breathe } from 'node:timers/promises'
import type { RetentionLimits } from './config.ts'
import type { Clock } from '../system/clock.ts'
import { hex } from './record.ts'
import { systemEntry } from './own-entries.ts'
import type { Trail } from './trail.ts'
import type { TrailStore } from './trail-store.ts'
import { verifyTrail, type Verification } from './verification.ts'

export interface RetentionOptions extends RetentionLimits {
  readonly store: TrailStore
  readonly trail: Trail
  readonly clock: Pick<Clock, 'now'>
}

const dayMs = 86_400_000
// A clock that is wrong for an hour must not cost the whole trail.
const oldestAtOnce = 20_000
// A smaller surplus waits for the next hour; otherwise each checkpoint would be the surplus of the next run.
const surplusAtLeast = 100
// No honest record is larger: a client that fills the database must not make the daemon remove the trail.
const mostBytesEach = 2_048
// Removed, with its rows in five indexes, in some milliseconds.
const sliceLength = 25

/** A clock that is set by less than this has not jumped. */
const jumpMs = 3_600_000
/** Records before a start of the program, of which the oldest says that time has passed: the newest may be of a wrong clock. */
const witnesses = 100

/**
 * The time by which records are too old. A clock that has jumped is obeyed once it went on without another jump for a day; until then time passes
 * from where it was, and at the start of the program from the last records before. Boards without a clock begin in a wrong year.
 */
export function createAgeClock(
  { store, trail }: Pick<RetentionOptions, 'store' | 'trail'>,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Pick<Clock, 'now'> {
  const started = { seq: trail.head().seq, at: clock.now(), monotonic: clock.monotonic() }
  const atStart = () => {
    const times = Array.from(
      { length: witnesses },
      (_, index) => store.read(started.seq - index)?.at ?? Infinity,
    )
    return Math.min(started.at, ...times) - started.monotonic
  }
  /** Wall time less monotonic time that is obeyed, and the one that may be once it has lasted. */
  let obeyed: number | undefined
  let steady: { readonly offset: number; readonly since: number } | undefined
  return {
    now() {
      const monotonic = clock.monotonic()
      const offset = clock.now() - monotonic
      if (!steady || Math.abs(offset - steady.offset) > jumpMs) steady = { offset, since: monotonic }
      if (monotonic - steady.since >= dayMs) obeyed = offset
      obeyed ??= atStart()
      return Math.min(clock.now(), monotonic + obeyed)
    },
  }
}

/**
 * Removes the oldest records: a bounded number of those that are too old, and all that exceed the maximum size. The
 * chain documents this: before the first record is removed, a record is written with the number of removed records and
 * the hash of the last one. Records are verified before they are removed; nothing is removed from a damaged trail,
 * since it is evidence.
 * @returns the number of removed records
 * @throws when the trail is damaged, or cannot be written
 */
export async function retain(options: RetentionOptions): Promise<number> {
  const { store } = options
  // Finishes an earlier run.
  let count = await removeUpToCheckpoint(store)
  const first = store.first()
  count += await removeTo(options, Math.min(lastTooOld(options, first), first + oldestAtOnce - 1))
  for (;;) {
    const surplus = surplusOf(options)
    const removed = surplus < surplusAtLeast ? 0 : await removeTo(options, store.first() + surplus - 1)
    if (removed === 0) return count
    count += removed
  }
}

async function removeTo({ store, trail }: RetentionOptions, seq: number): Promise<number> {
  const first = store.first()
  const last = seq >= first ? store.read(seq) : undefined
  if (!last) return 0
  const head = trail.head()
  const { problem } = await verifyTrail({ store, head, upTo: Math.min(seq + 1, head.seq) })
  if (problem) throw refuse({ store, trail }, problem)
  trail.append(
    systemEntry({
      action: 'delete',
      kind: 'checkpoint',
      resourceName: String(last.seq),
      resourceUid: hex(last.hash),
      message: `retention removes ${last.seq - first + 1} records, ${first} to ${last.seq}`,
    }),
    undefined,
    // In the transaction of the record: without the record, nothing is removed.
    (record) => store.putCheckpoint({ seq: record.seq, removedTo: last.seq }),
  )
  return removeUpToCheckpoint(store)
}

/** Recorded in the trail once, and in the journal each hour. */
function refuse(
  { store, trail }: Pick<RetentionOptions, 'store' | 'trail'>,
  problem: NonNullable<Verification['problem']>,
): Error {
  const message = `retention removes nothing, the trail is damaged: record ${problem.seq}, ${problem.message}`
  if (store.newest('audit', 'action')?.message !== message)
    trail.append(systemEntry({ action: 'action', kind: 'audit', message, outcome: 'failed' }))
  return new Error(message)
}

async function removeUpToCheckpoint(store: TrailStore): Promise<number> {
  let count = 0
  for (;;) {
    const removed = store.remove(sliceLength)
    count += removed
    if (removed < sliceLength) return count
    await breathe()
  }
}

/** Number of the oldest records that exceed the maximum size, by the average size of all records. */
function surplusOf({ store, trail, limitBytes }: RetentionOptions): number {
  const count = trail.head().seq - store.first() + 1
  const bytes = Math.min(store.usedBytes(), count * mostBytesEach)
  return bytes <= limitBytes ? 0 : Math.floor((count * (bytes - limitBytes)) / bytes)
}

/** Number of the newest record that is too old; the number before the first if there is none. */
function lastTooOld({ store, trail, clock, retentionDays }: RetentionOptions, first: number): number {
  const oldest = clock.now() - retentionDays * dayMs
  // Times rise with the numbers, unless the clock was set back; a binary search finds the first record to keep.
  let [low, high] = [first, trail.head().seq + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((store.read(middle)?.at ?? 0) >= oldest) high = middle
    else low = middle + 1
  }
  return low - 1
}
