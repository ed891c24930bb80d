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

/** How often a job ran since the start. */
export interface JobFigures {
  readonly name: string
  /** Runs that ended, well or not. */
  readonly runs: number
  readonly failures: number
  /** Of the last run that ended; undefined before the first. */
  readonly durationMs: number | undefined
  /** Since the last run that ended well; undefined before the first. */
  readonly sinceSuccessMs: number | undefined
}

export interface Jobs {
  start(): void
  stop(): void
  /** False while a job is stuck; the watchdog is then left hungry. */
  areMoving(): boolean
  figures(): readonly JobFigures[]
}

interface Count {
  runs: number
  failures: number
  durationMs: number | undefined
  /** Monotonic milliseconds. */
  succeededAt: number | undefined
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
  const counts = new Map<string, Count>(
    table.map(({ name }) => [name, { runs: 0, failures: 0, durationMs: undefined, succeededAt: undefined }]),
  )

  async function runOnce(job: Job): Promise<void> {
    const begunAt = monotonic()
    lastBegunAt = begunAt
    runningSince.set(job.name, begunAt)
    const count = counts.get(job.name)
    try {
      await job.run()
      if (count) count.succeededAt = monotonic()
    } catch (error) {
      if (count) count.failures += 1
      log.error({ err: error, job: job.name }, 'job failed')
    } finally {
      runningSince.delete(job.name)
      if (count) {
        count.runs += 1
        count.durationMs = monotonic() - begunAt
      }
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
    figures: () =>
      [...counts].map(([name, { succeededAt, ...count }]) => ({
        name,
        ...count,
        sinceSuccessMs: succeededAt === undefined ? undefined : monotonic() - succeededAt,
      })),
  }
}
