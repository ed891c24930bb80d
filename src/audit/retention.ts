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
  readonly clock: Clock
}

const dayMs = 86_400_000
// A clock that is wrong for an hour must not cost the whole trail.
const oldestAtOnce = 20_000
// Fewer wait for the next hour, or each checkpoint would be the surplus of the one before.
const surplusAtLeast = 100
// No honest record takes more: a client that fills the database must not make the daemon remove the trail.
const mostBytesEach = 2_048
// Removed, with its rows of five indexes, in some milliseconds.
const sliceLength = 25

/**
 * Takes the oldest records away: a bounded number of those that are too old, and all that are too many. The chain says
 * so itself: before the first one goes, a record is written that holds how many go and the hash of the last of them.
 * What goes is verified first; from a trail that is not whole nothing is removed, since it is evidence.
 * @returns how many went
 * @throws when the trail is not whole, or cannot be written
 */
export async function retain(options: RetentionOptions): Promise<number> {
  const { store } = options
  // What an earlier run had not finished.
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
    // Where the record cannot be written, this is not, and nothing goes.
    (record) => store.putCheckpoint({ seq: record.seq, removedTo: last.seq }),
  )
  return removeUpToCheckpoint(store)
}

/** Recorded once, and in the journal each hour. */
function refuse(
  { store, trail }: Pick<RetentionOptions, 'store' | 'trail'>,
  problem: NonNullable<Verification['problem']>,
): Error {
  const message = `retention removes nothing, the trail is not whole: record ${problem.seq}, ${problem.message}`
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

/** How many of the oldest records are too many, by the average of all. */
function surplusOf({ store, trail, limitBytes }: RetentionOptions): number {
  const count = trail.head().seq - store.first() + 1
  const bytes = Math.min(store.usedBytes(), count * mostBytesEach)
  return bytes <= limitBytes ? 0 : Math.floor((count * (bytes - limitBytes)) / bytes)
}

/** Number of the newest record that is too old; one before the first when none is. */
function lastTooOld({ store, trail, clock, retentionDays }: RetentionOptions, first: number): number {
  const oldest = clock.now() - retentionDays * dayMs
  // Time grows with the number, but for a clock that was set back; the first that is kept is found by halves.
  let [low, high] = [first, trail.head().seq + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((store.read(middle)?.at ?? 0) >= oldest) high = middle
    else low = middle + 1
  }
  return low - 1
}
