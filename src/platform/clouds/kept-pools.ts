import { setTimeout as sleep } from 'node:timers/promises'
import { createBoundedMap } from '../../base/bounded-map.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { platformErrors } from '../codes.ts'
import type { Machine, MachineCondition } from './schemas.ts'
import type { MachineRead } from './machines.ts'

const stringBytes = 16
const objectBytes = 32
const propertyBytes = 32

/**
 * Estimated bytes of memory of a value of JSON, rather too many: properties count as entries of a map, with their names. Twice as many
 * where texts have letters beyond Latin-1.
 */
export function heapBytes(value: unknown): number {
  if (typeof value === 'string') return stringBytes + value.length
  if (typeof value !== 'object' || value === null) return 8
  let bytes = objectBytes
  if (Array.isArray(value)) for (const each of value) bytes += 8 + heapBytes(each)
  else
    for (const [name, each] of Object.entries(value)) bytes += propertyBytes + name.length + heapBytes(each)
  return bytes
}

/** The machines of a pool. */
export interface SeenPool {
  /** The newest first. */
  readonly machines: readonly Machine[]
  /** Age of the machines, where the last read has not brought them. */
  readonly condition: MachineCondition | undefined
}

export interface KeptPoolsOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Ends the reads. */
  readonly stopping: AbortSignal
  readonly limits?: Partial<typeof usualLimits>
}

/** Last read machines of the pools of clouds. */
export interface KeptPools {
  /**
   * The machines of a pool, read at most every ten seconds, however many ask. Where a read is slow or fails, the machines of the last one, for
   * five minutes, or until the memory is needed for pools that are asked.
   * @param key of the pool
   * @param read is called with limits of time and memory; its CloudUnavailable is one that may pass
   * @throws what `read` throws, and AppError CloudUnavailable
   */
  see(key: string, read: (limits: MachineRead) => Promise<readonly Machine[]>): Promise<SeenPool>
}

const usualLimits = {
  everyMs: 10_000,
  /** A read that takes longer is waited for only where nothing is known yet. */
  waitMs: 5_000,
  readMs: 30_000,
  keptMs: 300_000,
  /** Memory limit of the machines of one pool, with the data read for them. Ten thousand servers take some 20 MiB, without metadata; 50,000 ports 25. */
  poolBytes: 50_331_648,
  /** The same of all pools together: a third of the heap of the platform. */
  allBytes: 83_886_080,
}
const mostPools = 2_000

interface Kept {
  /** Start of the last read, by the monotonic clock. */
  startedAt: number
  reading: Promise<void> | undefined
  /** Memory of the read, in bytes. */
  readingBytes: number
  /** Error of the last read. */
  failure: Error | undefined
  last: { readonly machines: readonly Machine[]; readonly bytes: number; readonly at: number } | undefined
}

export function createKeptPools({ clock, log, stopping, limits }: KeptPoolsOptions): KeptPools {
  const { everyMs, waitMs, readMs, keptMs, poolBytes, allBytes } = { ...usualLimits, ...limits }
  const pools = createBoundedMap<Kept>({
    maximum: mostPools,
    // A failure is only kept so that the next read is not before its time.
    worth: ({ reading, startedAt, last }, now) =>
      reading ? Infinity : Math.max(0, last ? last.at + keptMs - now : startedAt + everyMs - now),
  })

  /**
   * Counts the memory of a read. Where all pools together would take too much, machines that were read more than ten seconds ago are forgotten, the
   * oldest first.
   * @throws AppError CloudUnavailable
   */
  function hold(kept: Kept, bytes: number): void {
    kept.readingBytes = bytes
    if (bytes > poolBytes) throw tooLarge('the machines of the pool take more memory than there is for one')
    const all = [...pools.entries()].map(([, each]) => each)
    const now = clock.monotonic()
    let excess = all.reduce(
      (sum, { readingBytes, last }) => sum + readingBytes + (last?.bytes ?? 0),
      -allBytes,
    )
    if (excess <= 0) return
    const forgettable = all
      .filter(({ last }) => last !== undefined && now - last.at >= everyMs)
      .sort((one, two) => (one.last?.at ?? 0) - (two.last?.at ?? 0))
    for (const each of forgettable) {
      if (excess <= 0) return
      excess -= each.last?.bytes ?? 0
      each.last = undefined
    }
    if (excess > 0) throw tooLarge('the pools that are asked at the moment take more memory than there is')
  }

  function poolOf(key: string, now: number): Kept {
    const known = pools.get(key)
    if (known) return known
    const fresh: Kept = {
      startedAt: -Infinity,
      reading: undefined,
      readingBytes: 0,
      failure: undefined,
      last: undefined,
    }
    pools.set(key, fresh, now)
    return fresh
  }

  /** Does not throw. */
  async function readInto(kept: Kept, key: string, read: Parameters<KeptPools['see']>[1]): Promise<void> {
    try {
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(readMs)])
      const machines = await read({ signal, hold: (bytes) => hold(kept, bytes) })
      kept.last = { machines: machines.toSorted(byAge), bytes: heapBytes(machines), at: clock.monotonic() }
      kept.failure = undefined
    } catch (error) {
      kept.failure = error instanceof Error ? error : new Error('the read of a pool failed', { cause: error })
      if (!isPassing(error)) kept.last = undefined
      if (!stopping.aborted) log.warn({ pool: key, err: error }, 'the machines of a pool could not be read')
    } finally {
      kept.reading = undefined
      kept.readingBytes = 0
    }
  }

  return {
    async see(key, read) {
      const now = clock.monotonic()
      const kept = poolOf(key, now)
      if (!kept.reading && now - kept.startedAt >= everyMs) {
        kept.startedAt = now
        kept.reading = readInto(kept, key, read)
      }
      const isKept = () => kept.last !== undefined && clock.monotonic() - kept.last.at < keptMs
      if (isKept()) await endedWithin(kept.reading, waitMs - (now - kept.startedAt))
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
const tooLarge = (message: string) => new AppError(platformErrors.CloudUnavailable, message)
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

// The default order of the list: a page then sorts a sorted array.
const byAge = (one: Machine, two: Machine) =>
  Date.parse(two.metadata.creationTimestamp) - Date.parse(one.metadata.creationTimestamp)
