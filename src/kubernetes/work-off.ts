import { setTimeout as sleep } from 'node:timers/promises'
import { KubernetesError } from './client.ts'
import { isPassing } from './passing.ts'

/** The message is one line for operators. */
export class ApplyFailed extends Error {
  override readonly name = 'ApplyFailed'
}

export interface Queue<Item> {
  readonly items: readonly Item[]
  /** Called before the items are gone through, each time with those that are left. */
  readonly before?: (items: readonly Item[]) => Promise<void>
  readonly work: (item: Item) => Promise<void>
  /** For messages. */
  readonly nameOf: (item: Item) => string
  /** Says what it waits for, a line for operators. */
  readonly onLine: (line: string) => void
  readonly signal: AbortSignal
  /** How long to try again, since the last item that was done. */
  readonly patienceMs: number
  readonly firstPauseMs: number
}

const longestPauseMs = 5_000
// What takes less is not worth a line.
const quietMs = 2_000

/**
 * Does the work for each item. What the API server refuses for the moment is tried again behind the others.
 * @throws ApplyFailed which item cannot be done, and why; any error after the signal
 */
export async function workOff<Item>(queue: Queue<Item>): Promise<void> {
  const { onLine, signal, patienceMs, firstPauseMs } = queue
  let pending = queue.items
  let pauseMs = firstPauseMs
  let movedAt = performance.now()
  let told = ''
  for (;;) {
    const { late, reason } = await workOnce(queue, pending)
    if (late.length === 0) return
    if (late.length < pending.length) {
      movedAt = performance.now()
      pauseMs = firstPauseMs
    }
    const waitedMs = performance.now() - movedAt
    if (waitedMs >= patienceMs)
      throw new ApplyFailed(`${reason}; it was tried again for ${Math.round(waitedMs / 1_000)} s`)
    if (waitedMs >= quietMs && told !== reason) onLine(`waits: ${(told = reason)}`)
    pending = late
    await sleep(pauseMs, undefined, { signal })
    pauseMs = Math.min(pauseMs * 2, longestPauseMs)
  }
}

/** @returns the items that the API server may accept later, and why it did not accept the first of them */
async function workOnce<Item>(
  { before, work, nameOf, signal }: Queue<Item>,
  items: readonly Item[],
): Promise<{ readonly late: readonly Item[]; readonly reason: string }> {
  const late: Item[] = []
  let reason = ''
  try {
    await before?.(items)
  } catch (error) {
    signal.throwIfAborted()
    reason = (error as Error).message
    if (!isPassing(error)) throw new ApplyFailed(reason, { cause: error })
    return { late: items, reason }
  }
  for (const [index, item] of items.entries()) {
    try {
      await work(item)
    } catch (error) {
      signal.throwIfAborted()
      const line = `${nameOf(item)}: ${(error as Error).message}`
      if (!isPassing(error)) throw new ApplyFailed(line, { cause: error })
      reason ||= line
      // Without a reply to one, there is none to the others.
      const isSilent = error instanceof KubernetesError && error.status === 0
      late.push(...(isSilent ? items.slice(index) : [item]))
      if (isSilent) break
    }
  }
  return { late, reason }
}
