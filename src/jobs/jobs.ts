// Each room has its jobs: host facts every 5 seconds and every 5 minutes, accounts every minute (and at once when a local account file changes),
// the certificate every hour, head and retention of the audit trail every hour. node-cron computes when each job is due next. The timer that starts
// them is our own (`jobs/jobs.ts`): it plans every job anew when the wall clock was set, so a change of it, as by the first answer of NTP on a board
// without a clock, stops no job. The daemon notifies the watchdog of systemd, by `systemd-notify`, only while the event loop
// turns and no job is stuck.
//
// `auth/account-watch.ts` checks accounts against the local files first, which starts no program and is the only check before the port
// listens. Only entries that these files lack are looked up in NSS (`auth/accounts.ts`): accounts of a directory, and administrators by
// its groups, four at a time and for less than a minute. A session stores the source of its account and of its role, so that a removed
// local account is not mistaken for one of a directory.

import { createTask, type ScheduledTask } from 'node-cron'
import type { Logger } from 'pino'
import { inSeconds, sampleEach } from '../base/sample.ts'
import type { FiguresOf, Job, Room } from '../root/room.ts'
import type { about } from './about.ts'

// The table has a job every few seconds and one every minute; a scheduler that is silent for longer is dead.
const longestPauseMs = 150_000
// A run that is later than this was skipped over: the clock was set, or the host slept.
const latestMs = 1_000
// The clock may be set while the timer runs, so no timer is trusted for longer.
const longestWaitMs = 30_000

/** The schedule. Its jobs start in the phase `background`. */
export interface Jobs extends Room {
  background(): void
  stop(): void
  /** False while a job is stuck, or no job has started for too long; the watchdog is then not fed. */
  isAlive(): boolean
  figures(): FiguresOf<typeof about.families>
}

interface Count {
  /** Runs that ended, successful or not. */
  runs: number
  failures: number
  /** Of the last run that ended. */
  durationMs: number | undefined
  /** Monotonic milliseconds. */
  succeededAt: number | undefined
}

interface Plan {
  /** All jobs of one schedule. */
  readonly jobs: readonly Job[]
  readonly task: ScheduledTask
  /** The next run, by the wall clock; milliseconds since 1970. */
  at: number
}

/**
 * The table of recurring work: node-cron says when each job is due, by the wall clock. A job never overlaps itself, and its error stops neither the schedule nor the daemon. A missed run is skipped, since the next one is soon enough.
 *
 * node-cron's own timers are not used. They continue from the time they waited for: when the clock is set forward, they walk
 * over every time in between, without a pause and until the memory is full; when it is set back, they wait until it reaches
 * that time again. Here every schedule is planned again from the present after its turn, and all of them when the clock was set. Not oftener:
 * to compute one time costs about as much as a small job.
 */
export function createJobs(
  table: readonly Job[],
  { log, monotonic }: { log: Logger; monotonic: () => number },
): Jobs {
  const runningSince = new Map<string, number>()
  // Of any job; undefined while none is scheduled.
  let lastStartedAt: number | undefined
  let plans: Plan[] = []
  let timer: NodeJS.Timeout | undefined
  // The two clocks differ by this; by something else after the wall clock was set, or the host slept.
  const difference = () => Date.now() - monotonic()
  let plannedBy = 0
  const counts = new Map<string, Count>(
    table.map(({ name }) => [name, { runs: 0, failures: 0, durationMs: undefined, succeededAt: undefined }]),
  )

  async function runOnce(job: Job): Promise<void> {
    const startedAt = monotonic()
    lastStartedAt = startedAt
    runningSince.set(job.name, startedAt)
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
        count.durationMs = monotonic() - startedAt
      }
    }
  }

  function beat(): void {
    const isClockSet = Math.abs(difference() - plannedBy) > latestMs
    if (isClockSet) plannedBy = difference()
    for (const plan of plans) {
      const lateMs = Date.now() - plan.at
      if (lateMs >= 0 && lateMs <= latestMs) plan.jobs.forEach(runUnlessRunning)
      if (lateMs >= 0 || isClockSet) plan.at = nextRun(plan.task)
    }
    arm()
  }

  function runUnlessRunning(job: Job): void {
    if (runningSince.has(job.name))
      log.debug({ job: job.name }, 'the job is still running, so this run is skipped')
    else void runOnce(job)
  }

  function arm(): void {
    const waitMs = Math.min(...plans.map(({ at }) => at)) - Date.now()
    timer = setTimeout(beat, Math.min(Math.max(waitMs, 0), longestWaitMs))
  }

  const isAlive = () =>
    monotonic() - (lastStartedAt ?? monotonic()) <= longestPauseMs &&
    table.every(
      ({ name, stuckAfterMs }) => monotonic() - (runningSince.get(name) ?? monotonic()) <= stuckAfterMs,
    )

  return {
    background() {
      lastStartedAt = monotonic()
      plannedBy = difference()
      plans = [...Map.groupBy(table, ({ schedule }) => schedule)].map(([schedule, jobs]) => {
        // Only asked for its next time: the timer above runs the jobs.
        const task = createTask(schedule, () => undefined)
        return { jobs, task, at: nextRun(task) }
      })
      arm()
    },
    stop() {
      clearTimeout(timer)
      for (const { task } of plans) void task.destroy()
      plans = []
      lastStartedAt = undefined
    },
    isAlive,
    checks: [{ name: 'jobs', kind: 'alive', holds: isAlive }],
    figures() {
      const each = (value: (count: Count) => number | undefined) =>
        sampleEach(
          counts,
          ([name]) => ({ job_name: name }),
          ([, count]) => value(count),
        )
      return {
        edgehostd_job_runs_total: each(({ runs }) => runs),
        edgehostd_job_failures_total: each(({ failures }) => failures),
        edgehostd_job_duration_seconds: each(({ durationMs }) => inSeconds(durationMs)),
        edgehostd_job_success_age_seconds: each(({ succeededAt }) =>
          inSeconds(succeededAt === undefined ? undefined : monotonic() - succeededAt),
        ),
      }
    },
  }
}

/** The next run after the present second, by the wall clock; milliseconds since 1970. */
function nextRun(task: ScheduledTask): number {
  return task.getNextRuns(1)[0]?.getTime() ?? Infinity
}
