import type { Clock } from '../../system/clock.ts'
import type { Database } from '../../store/database.ts'
import type { Logger } from '../../system/log.ts'
import type { AddEvent } from '../events/event-log.ts'
import {
  isUnderWay,
  hasRun,
  isDeleting,
  isUpdate,
  type ClusterRecord,
  type ClusterStore,
  type Progress,
} from '../cluster-store.ts'
import type { Observed } from './observed.ts'
import { plan, type PlanParts, type Stage } from './plan.ts'
import { tell } from './seen.ts'
import { blockerOf, statusOf, type ClusterStatus, type Deadline } from './status.ts'
import type { StepStore } from './step-store.ts'
import { deadlineOf, verdictOf, type UpdateLimits, type Verdict } from './verdict.ts'
import type { DesiredState } from '../desired/desired-state.ts'

/** How much of the time may be lost with the daemon. */
const storedEveryMs = 10_000

/**
 * Counts the times of the present revision by the monotonic clock, from the stored ones on, so that neither the end of the daemon nor a
 * clock that is set starts them anew. Time for which the daemon or the host was off does not count: nothing was tried in it, and a host
 * that was off for a night would take back what it has hardly begun.
 */
function createProgressCount(clock: Pick<Clock, 'monotonic'>) {
  let known: Progress | undefined
  let lastAt = 0
  let wasInChange = false
  return {
    /**
     * Notes an observation.
     * @returns the times until now, and whether they are to be stored
     */
    observe(
      { generation, progress }: Pick<ClusterRecord, 'generation' | 'progress'>,
      isInChange: boolean,
    ): { readonly times: Progress; readonly isDue: boolean } {
      const now = clock.monotonic()
      const isKnown = known?.generation === generation
      const stored = progress?.generation === generation ? progress : undefined
      const before = (isKnown ? known : stored) ?? { generation, inChangeMs: 0, elsewhereMs: 0 }
      const passed = isKnown ? now - lastAt : 0
      const times = {
        ...before,
        [isInChange ? 'inChangeMs' : 'elsewhereMs']:
          before[isInChange ? 'inChangeMs' : 'elsewhereMs'] + passed,
      }
      const isTurn = isKnown && wasInChange !== isInChange
      known = times
      lastAt = now
      wasInChange = isInChange
      const sumOf = (each: Progress | undefined) => (each ? each.inChangeMs + each.elsewhereMs : 0)
      return { times, isDue: isTurn || !stored || sumOf(times) - sumOf(stored) >= storedEveryMs }
    },
    reset: () => void (known = undefined),
  }
}

interface ObserverOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'noteSeen' | 'noteStatus' | 'noteProgress'>
  /** The cluster is Running with the active revision, for the first time or again; within a transaction. */
  readonly noteGood: (record: ClusterRecord) => void
  /** Whether the active revision is the last good one again, or its packs. */
  readonly isGoingBack: (record: ClusterRecord) => boolean
  /** Called with each observation. */
  readonly onObservation: (observation: Observation) => void
  readonly limits: UpdateLimits
  readonly steps: Pick<StepStore, 'list'>
  readonly parts: PlanParts
  readonly observe: (desired: DesiredState, signal: AbortSignal) => Promise<Observed>
  readonly add: AddEvent
  /** The status of the cluster has changed. */
  readonly onStatus: () => void
  /** Milliseconds between two observations while a step runs. */
  readonly pauseMs: number
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Observed state of the host, and the status of the cluster from it. */
export interface Observer {
  /** Begins with another cluster, or after a start. */
  reset(record: ClusterRecord): void
  /**
   * Observes the host, plans, and emits changes.
   * @returns undefined where the cluster is another one meanwhile
   */
  observe(desired: DesiredState): Promise<Observation | undefined>
  /** Observes repeatedly during work, so that the state is never old. */
  during<T>(desired: DesiredState | undefined, work: () => Promise<T>): Promise<T>
  /** Last observation of a cluster; undefined before the first. */
  last(uid: string | undefined): Observation | undefined
  status(record: ClusterRecord): ClusterStatus
  /** Time that is left to the active revision; undefined where it has no limit, and before the first observation. */
  deadline(record: ClusterRecord | undefined): Deadline | undefined
  /** Reports why the cluster cannot be worked on, until the next observation. */
  fail(reason: string): void
  /** Forgets a cluster that is gone. */
  forget(): void
}

export interface Observation {
  readonly desired: DesiredState
  readonly observed: Observed
  readonly stages: readonly Stage[]
  readonly silentMs: number
  readonly verdict: Verdict
  readonly deadline: Deadline | undefined
  /** Monotonic time. */
  readonly at: number
}

const longestObservationMs = 30_000

export function createObserver(options: ObserverOptions): Observer {
  const { database, store, steps, parts, add, pauseMs, limits, stopping, clock, log } = options
  const progress = createProgressCount(clock)
  let newest: Observation | undefined
  /** Why the loop itself cannot continue. */
  let trouble: string | undefined
  /** Monotonic time of the last answer of the API server, or of the first observation of one that never answered. */
  let answeredAt: number | undefined

  const last = (uid: string | undefined) => (newest?.desired.uid === uid ? newest : undefined)

  function status(record: ClusterRecord): ClusterStatus {
    const seen = last(record.uid)
    const said = seen
      ? statusOf({
          desired: seen.desired,
          observed: seen.observed,
          silentMs: seen.silentMs,
          isDeleting: isDeleting(record),
          hasRun: hasRun(record),
          isUpdate: isUpdate(record),
          steps: steps.list(),
          stuck: stuckOf(record, seen.verdict),
          planned: new Set(seen.stages.flat().map(({ key }) => key)),
        })
      : record.status
    if (trouble === undefined) return isDeleting(record) ? { ...said, ...deleting } : said
    const failed = isDeleting(record) ? deleting : ({ state: 'Error', phase: 'Failed' } as const)
    return { ...said, ...failed, reason: trouble }
  }

  async function observe(desired: DesiredState): Promise<Observation | undefined> {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(longestObservationMs)])
    const observed = await options.observe(desired, signal)
    const record = store.current()
    if (record?.uid !== desired.uid) return undefined
    const isSilent = observed.engine.controlPlane === 'complete' && observed.engine.api !== 'answers'
    const now = clock.monotonic()
    // Between two observations of a healthy cluster it may have been silent since its last answer.
    answeredAt = isSilent ? (answeredAt ?? now) : now
    const silentMs = now - answeredAt
    const stages = plan(parts, {
      desired,
      observed,
      isDeleting: isDeleting(record),
      hasRun: hasRun(record),
      isUpdate: isUpdate(record),
      isRenewalAskedFor: isUnderWay(record.renewal),
    })
    const planned = new Set(stages.flat().map(({ key }) => key))
    // Those of the first revision and of one that runs have no limit, and are not counted.
    const counted = isUpdate(record) && !hasRun(record)
    const { times, isDue } = progress.observe(record, observed.engine.change !== undefined)
    const given = {
      record,
      observed,
      silentMs,
      trouble: blockerOf(desired, observed),
      isGoingBack: options.isGoingBack(record),
      ...times,
      steps: steps.list().filter(({ key }) => planned.has(key)),
    }
    const verdict = verdictOf(given, limits)
    const deadline = deadlineOf({ ...given, verdict }, limits)
    newest = { desired, observed, stages, silentMs, verdict, deadline, at: now }
    options.onObservation(newest)
    trouble = undefined
    const stands = status(record)
    const emitted = tell(record.seen, {
      desired,
      observed,
      status: stands,
      isDeleting: isDeleting(record),
      stuck: stuckOf(record, verdict),
      deadline,
      now: clock.now(),
    })
    const isFirstRun = stands.state === 'Running' && !hasRun(record)
    const hasChanged = differ(emitted.seen, record.seen) || differ(stands, record.status)
    const isStored = counted && !isFirstRun && isDue
    if (!isFirstRun && !hasChanged && !isStored && emitted.events.length === 0) return newest
    database.transaction(() => {
      if (isStored) store.noteProgress(times)
      for (const event of emitted.events) add(record, event)
      store.noteSeen(emitted.seen)
      store.noteStatus(stands)
      if (isFirstRun) options.noteGood(record)
    })
    if (isFirstRun || hasChanged || emitted.events.length > 0) options.onStatus()
    return newest
  }

  async function during<T>(desired: DesiredState | undefined, work: () => Promise<T>): Promise<T> {
    if (!desired) return work()
    let timer: NodeJS.Timeout | undefined
    let looking: Promise<void> = Promise.resolve()
    const again = () => {
      looking = observe(desired)
        .catch((error: unknown) => {
          log.debug({ err: error }, 'the cluster could not be observed while a step runs')
        })
        .then(() => void (timer = isOver ? undefined : setTimeout(again, pauseMs)))
    }
    let isOver = false
    timer = setTimeout(again, pauseMs)
    try {
      return await work()
    } finally {
      isOver = true
      clearTimeout(timer)
      await looking
      clearTimeout(timer)
    }
  }

  return {
    reset(record) {
      newest = undefined
      progress.reset()
      answeredAt = record.status.phase === 'Unknown' ? -Infinity : undefined
    },
    observe,
    during,
    last,
    status,
    deadline(record) {
      const seen = record && last(record.uid)
      if (!seen?.deadline || seen.desired.generation !== record?.generation || isDeleting(record))
        return undefined
      // It has come to run since that observation.
      if (hasRun(record)) return undefined
      return { ...seen.deadline, leftMs: Math.max(0, seen.deadline.leftMs - (clock.monotonic() - seen.at)) }
    },
    fail: (reason) => void (trouble = reason),
    forget: () => void (newest = undefined),
  }
}

/** Why the cluster cannot be taken back, with advice for an operator; empty otherwise. */
const stuckOf = ({ generation }: ClusterRecord, verdict: Verdict) =>
  verdict.kind === 'stuck'
    ? `RollbackFailed: revision ${generation} does not run: ${verdict.reason}; it is still tried. See edgehostctl cluster events, and apply a revision that runs: edgehostctl cluster rollback NUMBER where the host is managed there, otherwise a change on its platform`
    : ''

const deleting = { state: 'Deleting', phase: 'Deleting' } as const
const differ = (one: unknown, other: unknown) => JSON.stringify(one) !== JSON.stringify(other)
