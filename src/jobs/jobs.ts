import { schedule, type ScheduledTask } from 'node-cron'
import type { Logger } from 'pino'

/** Work that recurs. A job only calls a verb of a room. */
export interface Job {
  readonly name: string
  /** Cron expression, with seconds when it has six fields. */
  readonly schedule: string
  /** A run that takes longer than this is stuck. */
  readonly stuckAfterMs: number
  run(): Promise<void> | void
}

// The table has a job every few seconds and one every minute; a scheduler that is silent for longer is dead.
const longestPauseMs = 150_000

export interface Jobs {
  start(): void
  stop(): void
  /** False while a job is stuck; the watchdog is then left hungry. */
  areMoving(): boolean
}

/** The table of recurring work, run by node-cron; a job never overlaps itself and its error ends nothing. */
export function createJobs(
  table: readonly Job[],
  { log, monotonic }: { log: Logger; monotonic: () => number },
): Jobs {
  const runningSince = new Map<string, number>()
  // Of any job; undefined while none is scheduled.
  let lastBegunAt: number | undefined
  let tasks: ScheduledTask[] = []

  async function runOnce(job: Job): Promise<void> {
    lastBegunAt = monotonic()
    runningSince.set(job.name, lastBegunAt)
    try {
      await job.run()
    } catch (error) {
      log.error({ err: error, job: job.name }, 'job failed')
    } finally {
      runningSince.delete(job.name)
    }
  }

  return {
    start() {
      lastBegunAt = monotonic()
      tasks = table.map((job) =>
        schedule(job.schedule, () => runOnce(job), {
          name: job.name,
          noOverlap: true,
          // A host that slept has missed runs; the next one is soon enough.
          suppressMissedWarning: true,
          logger: {
            info: () => undefined,
            warn: (message) => log.debug({ job: job.name }, message),
            error: (error) => log.error({ job: job.name, err: error }, 'scheduler'),
            debug: () => undefined,
          },
        }),
      )
    },
    stop() {
      for (const task of tasks) void task.destroy()
      tasks = []
      lastBegunAt = undefined
    },
    areMoving: () =>
      monotonic() - (lastBegunAt ?? monotonic()) <= longestPauseMs &&
      table.every(
        ({ name, stuckAfterMs }) => monotonic() - (runningSince.get(name) ?? monotonic()) <= stuckAfterMs,
      ),
  }
}
