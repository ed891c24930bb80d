import { createSharedRun } from '../base/shared-run.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { explain } from './runtimes/wire.ts'
import type { Runtime, SeenImage } from './runtimes/describe.ts'

const answerMs = 5_000

/** State and images of a runtime. */
export interface Reading {
  readonly runtime: Runtime['name']
  readonly endpoint: string
  readonly state: 'read' | 'stopped' | 'failed' | 'absent'
  /** Images of the last good reading. */
  readonly images: readonly SeenImage[]
  /** Time of the last good reading, milliseconds since 1970; undefined if there was none. */
  readonly readAt: number | undefined
  readonly message?: string
}

/** The readings of all runtimes of this host. */
export interface Readings {
  /** Reads all runtimes, each at most once at a time. Calls during a reading share the next one. Never throws. */
  refresh(): Promise<void>
  /** Whether all were read once. */
  isRead(): boolean
  /** Another array after each reading. */
  current(): readonly Reading[]
  /** Waits for a reading that the stop of the daemon ends. */
  stop(): Promise<void>
}

export interface ReadingsOptions {
  readonly runtimes: readonly Runtime[]
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  /** Time limit of an answer. */
  readonly limitMs?: number
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

export function createReadings(options: ReadingsOptions): Readings {
  const { runtimes, stopping, limitMs = answerMs, clock, log } = options
  let readings: readonly Reading[] = runtimes.map(unread)
  let isRead = false

  async function read(runtime: Runtime, last: Reading): Promise<Reading> {
    const { name, unit } = runtime
    const place = () => ({ runtime: name, endpoint: runtime.endpoint })
    const known = { images: last.images, readAt: last.readAt }
    try {
      const found = await inTime(runtime)
      if (found === 'absent') return { ...place(), state: 'absent', images: [], readAt: undefined }
      if (found === 'stopped')
        return {
          ...place(),
          ...known,
          state: 'stopped',
          message: `${name} does not run, and is not started for this`,
        }
      if (last.state === 'failed') log.info(place(), `the images of ${name} can be read again`)
      return { ...place(), state: 'read', images: found, readAt: clock.now() }
    } catch (error) {
      if (stopping.aborted) return last
      const message = explain(error, unit, limitMs)
      if (last.state !== 'failed') log.warn(place(), `the images of ${name} cannot be read: ${message}`)
      return { ...place(), ...known, state: 'failed', message }
    }
  }

  const runs = createSharedRun(async () => {
    const found = await Promise.all(
      runtimes.map((runtime, index) => read(runtime, readings[index] ?? unread(runtime))),
    )
    if (stopping.aborted) return
    readings = found
    isRead = true
  })

  /** A runtime that does not see the signal is left behind. */
  async function inTime(runtime: Runtime): ReturnType<Runtime['read']> {
    const signal = AbortSignal.any([AbortSignal.timeout(limitMs), stopping])
    const { promise: over, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    return Promise.race([runtime.read(signal), over])
  }

  return { refresh: runs.run, isRead: () => isRead, current: () => readings, stop: runs.ended }
}

const unread = ({ name, endpoint }: Runtime): Reading => ({
  runtime: name,
  endpoint,
  state: 'absent',
  images: [],
  readAt: undefined,
})
