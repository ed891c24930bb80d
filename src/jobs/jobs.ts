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
  let tasks: ScheduledTask[] = []

  async function runOnce(job: Job): Promise<void> {
    runningSince.set(job.name, monotonic())
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
    },
    areMoving: () =>
      table.every(
        ({ name, stuckAfterMs }) => monotonic() - (runningSince.get(name) ?? monotonic()) <= stuckAfterMs,
      ),
  }
}
