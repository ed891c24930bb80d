import { setImmediate as breathe } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import { hex } from './record.ts'
import { systemEntry, type Trail } from './trail.ts'
import type { TrailStore } from './trail-store.ts'

/** How much of the trail is kept; the section `audit` of the configuration. */
export interface RetentionLimits {
  /** Records older than this go. */
  readonly retentionDays: number
  /** Bytes in the database; the oldest records go beyond. */
  readonly limitBytes: number
}

export interface RetentionOptions extends RetentionLimits {
  readonly store: TrailStore
  readonly trail: Trail
  readonly clock: Clock
}

const dayMs = 86_400_000
// A clock that is wrong for an hour must not cost the whole trail.
const mostAtOnce = 20_000
// Removed, with its rows of five indexes, in some milliseconds.
const sliceLength = 25

/**
 * Takes the oldest records away. The chain says so itself: before the first one goes, a record is written that holds
 * how many go and the hash of the last of them.
 * @returns how many went
 */
export async function retain(options: RetentionOptions): Promise<number> {
  const { store, trail } = options
  // What an earlier run had not finished.
  let count = await removeUpToCheckpoint(store)
  const first = store.first()
  const target = Math.min(lastToGo(options, first), first + mostAtOnce - 1)
  const last = target >= first ? store.read(target) : undefined
  if (!last) return count
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
    ({ seq }) => store.putCheckpoint({ seq, removedTo: last.seq }),
  )
  count += await removeUpToCheckpoint(store)
  return count
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

/** Number of the newest record that is too old or too many; 0 when there is none. */
function lastToGo(
  { store, trail, clock, retentionDays, limitBytes }: RetentionOptions,
  first: number,
): number {
  const head = trail.head().seq
  const oldest = clock.now() - retentionDays * dayMs
  const surplus = store.endOffset(head) - limitBytes
  const isKept = (seq: number) => (store.read(seq)?.at ?? 0) >= oldest && store.endOffset(seq) > surplus
  // Both grow with the number, but for a clock that was set back; the first that is kept is found by halves.
  let [low, high] = [first, head + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (isKept(middle)) high = middle
    else low = middle + 1
  }
  return low - 1
}
