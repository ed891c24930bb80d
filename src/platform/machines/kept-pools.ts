import { setTimeout as sleep } from 'node:timers/promises'
import { createBoundedMap } from '../../base/bounded-map.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { platformErrors } from '../codes.ts'
import type { Machine, MachineCondition } from '../schemas/machines.ts'

/** The machines of a pool. */
export interface SeenPool {
  /** The newest first. */
  readonly machines: readonly Machine[]
  /** Says how old they are, where they are not as the last read has found them. */
  readonly condition: MachineCondition | undefined
}

export interface KeptPoolsOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Ends the reads. */
  readonly stopping: AbortSignal
  readonly limits?: Partial<typeof usualLimits>
}

/** What was read last of the pools of clouds. */
export interface KeptPools {
  /**
   * The machines of a pool, read at most every ten seconds, however many ask. Where a read is slow or fails they are those of the last one, for
   * five minutes.
   * @param key of the pool
   * @param read is called with a time limit; its CloudUnavailable is one that may pass
   * @throws what `read` throws, and AppError CloudUnavailable
   */
  see(key: string, read: (signal: AbortSignal) => Promise<readonly Machine[]>): Promise<SeenPool>
}

const usualLimits = {
  everyMs: 10_000,
  /** A read that takes longer is waited for only where nothing is known yet. */
  waitMs: 5_000,
  readMs: 30_000,
  keptMs: 300_000,
}
const mostPools = 200

interface Kept {
  /** When the last read began; the clock is the monotonic one. */
  begunAt: number
  reading: Promise<void> | undefined
  /** Why the last read failed. */
  failure: Error | undefined
  last: { readonly machines: readonly Machine[]; readonly at: number } | undefined
}

export function createKeptPools({ clock, log, stopping, limits }: KeptPoolsOptions): KeptPools {
  const { everyMs, waitMs, readMs, keptMs } = { ...usualLimits, ...limits }
  const pools = createBoundedMap<Kept>({
    maximum: mostPools,
    worth: ({ reading, begunAt }, now) => (reading ? Infinity : Math.max(0, begunAt + keptMs - now)),
  })

  function poolOf(key: string, now: number): Kept {
    const known = pools.get(key)
    if (known) return known
    const fresh: Kept = { begunAt: -Infinity, reading: undefined, failure: undefined, last: undefined }
    pools.set(key, fresh, now)
    return fresh
  }

  /** Does not throw. */
  async function readInto(kept: Kept, key: string, read: Parameters<KeptPools['see']>[1]): Promise<void> {
    try {
      const machines = await read(AbortSignal.any([stopping, AbortSignal.timeout(readMs)]))
      kept.last = { machines: machines.toSorted(byAge), at: clock.monotonic() }
      kept.failure = undefined
    } catch (error) {
      kept.failure = error instanceof Error ? error : new Error('the read of a pool failed', { cause: error })
      if (!isPassing(error)) kept.last = undefined
      if (!stopping.aborted) log.warn({ pool: key, err: error }, 'the machines of a pool could not be read')
    } finally {
      kept.reading = undefined
    }
  }

  return {
    async see(key, read) {
      const now = clock.monotonic()
      const kept = poolOf(key, now)
      if (!kept.reading && now - kept.begunAt >= everyMs) {
        kept.begunAt = now
        kept.reading = readInto(kept, key, read)
      }
      const isKept = () => kept.last !== undefined && clock.monotonic() - kept.last.at < keptMs
      if (isKept()) await endedWithin(kept.reading, waitMs - (now - kept.begunAt))
      else await kept.reading
      const { last, failure } = kept
      if (!last || !isKept()) throw failure ?? late()
      // A read that continues, or one that failed, came after it.
      const isOld = kept.reading !== undefined || failure !== undefined
      return {
        machines: last.machines,
        condition: isOld ? ageCondition(clock.monotonic() - last.at, failure) : undefined,
      }
    },
  }
}

const late = () => new AppError(platformErrors.CloudUnavailable, 'the cloud does not answer in time')
const isPassing = (error: unknown) =>
  error instanceof AppError && error.kind === platformErrors.CloudUnavailable

async function endedWithin(work: Promise<void> | undefined, ms: number): Promise<void> {
  const waiting = new AbortController()
  const pause = sleep(Math.max(0, ms), undefined, { signal: waiting.signal }).catch(() => undefined)
  await Promise.race([work, pause])
  waiting.abort()
}

function ageCondition(ageMs: number, failure: Error | undefined): MachineCondition {
  const reason = failure?.message ?? 'the cloud has not answered yet'
  const message = `as it was ${Math.round(ageMs / 1_000)} seconds ago: ${reason}`
  return { type: 'Outdated', status: 'True', reason: platformErrors.CloudUnavailable.code, message }
}

// As the list has them by default: a page then sorts what is sorted.
const byAge = (one: Machine, two: Machine) =>
  Date.parse(two.metadata.creationTimestamp) - Date.parse(one.metadata.creationTimestamp)
