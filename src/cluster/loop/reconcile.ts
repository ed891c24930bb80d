import { createHideOf } from '../../definition/slots/secrets.ts'
import { seeDisk } from '../../errors/advice.ts'
import type { Database } from '../../store/database.ts'
import { isUnwritable } from '../../store/unwritable.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { createAddEvent, type EventLog } from '../events/event-log.ts'
import { createAlarm } from '../../base/alarm.ts'
import type { Lock } from '../../base/lock.ts'
import { isDeleting, type ClusterRecord, type ClusterStore } from '../cluster-store.ts'
import type { EngineEvent } from '../engine/engine.ts'
import { createObserver, type Observation } from './observer.ts'
import type { Observed } from './observed.ts'
import type { Revision, RevisionStore } from '../desired/revisions.ts'
import { started, type ClusterStatus, type Deadline } from './status.ts'
import { createActivation } from './activation.ts'
import { type UpdateLimits, whyLate } from './verdict.ts'
import type { PackWork } from '../packs/pack-work.ts'
import { nextOf, withoutAside, type PlanParts } from './plan.ts'
import type { Step } from './step.ts'
import { createStepWork, createStepMemory, endedInVain } from './step-work.ts'
import type { StepRunner } from './step-runner.ts'
import type { StepStore } from './step-store.ts'
import type { DesiredState } from '../desired/desired-state.ts'

export interface ReconcileOptions {
  readonly database: Database
  readonly store: ClusterStore
  readonly revisions: RevisionStore
  readonly limits: UpdateLimits
  readonly steps: StepStore
  readonly runner: StepRunner
  readonly parts: PlanParts & {
    readonly packs: Pick<PackWork, 'steps' | 'noteStarted' | 'noteDone' | 'doubt' | 'forget'>
  }
  readonly observe: (desired: DesiredState, signal: AbortSignal) => Promise<Observed>
  /** The event of a line of a step; undefined for any other line. */
  readonly eventOf: (step: Pick<Step, 'key'>, line: string) => EngineEvent | undefined
  readonly events: Pick<EventLog, 'add'>
  /** One write at a time, also of the API's. */
  readonly inTurn: Lock
  /** Whether the host does something that a change of the cluster has to wait for; the default is no. */
  readonly isHeld?: () => boolean
  /** Reads the desired state from the folder of the cluster. @throws Error with a reason for operators */
  readonly readDesired: (record: ClusterRecord) => Promise<DesiredState>
  /** Releases resources of the cluster, as content; before it is forgotten. */
  readonly release: (record: ClusterRecord) => Promise<void>
  /** Removes the files of a cluster that is forgotten. */
  readonly removeFiles: (record: ClusterRecord) => Promise<void>
  /** A step has ended, for the metrics. */
  readonly onEnd?: (end: 'done' | 'failed' | 'cut-off', durationMs: number) => void
  /** The status of the cluster has changed. */
  readonly onStatus?: () => void
  /** 0 to 1. */
  readonly random?: () => number
  readonly pauses?: Partial<Pauses>
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Milliseconds between two observations. */
export interface Pauses {
  /** While a running cluster is healthy. */
  readonly healthy: number
  /** While something moves or is missing. */
  readonly moving: number
  /** While a step waits for its next try and no API server answers, and after an error of the loop. */
  readonly failed: number
  /** At least, however often something changes. */
  readonly least: number
}

/** Reconciles the host with the stored cluster, one step at a time, and observes again after each. */
export interface Reconcile {
  start(): void
  /** The stored or the observed state may have changed. A deletion ends the running step. */
  wake(): void
  /** Status of the cluster; undefined without a cluster. */
  status(): ClusterStatus | undefined
  /** Last observed state; undefined before the first observation of this cluster. */
  observed(): Observed | undefined
  /** Time that is left to the revision that is being applied; undefined where it has no limit. */
  deadline(): Deadline | undefined
  /** Ends with the signal `stopping`. */
  stopped(): Promise<void>
}

const pausesByDefault: Pauses = { healthy: 30_000, moving: 5_000, failed: 15_000, least: 250 }

export function createReconcile(options: ReconcileOptions): Reconcile {
  const { database, store, revisions, limits, steps, runner, parts, stopping, clock, log } = options
  const { random = Math.random, onEnd = () => undefined, onStatus = () => undefined } = options
  const pauses = { ...pausesByDefault, ...options.pauses }
  const add = createAddEvent(options.events)
  const isHeld = options.isHeld ?? (() => false)
  const memory = createStepMemory(clock, () => (isHeld() ? pauses.moving : 0))
  const activation = createActivation({
    database,
    store,
    revisions,
    steps,
    runner,
    add,
    clock,
    inTurn: options.inTurn,
    isHeld,
  })
  const observer = createObserver({
    database,
    store,
    steps,
    parts,
    add,
    onStatus,
    limits,
    stopping,
    clock,
    log,
    observe: options.observe,
    pauseMs: pauses.moving,
    noteGood: activation.noteGood,
    isGoingBack: activation.isGoingBack,
    onObservation(observation) {
      const { verdict, observed } = observation
      // The step that runs is one of a revision that has failed.
      if (verdict.kind === 'back') work.makeWay()
      // It may wait until its time is over for pods that never come, while the revision that mends them is there.
      else if (following(observation))
        work.makeWay((pack = '') => (observed.packs.get(pack)?.troubles ?? []).length > 0)
    },
  })
  const work = createStepWork({
    database,
    store,
    steps,
    runner,
    observer,
    memory,
    add,
    onEnd,
    random,
    stopping,
    clock,
    log,
    packs: parts.packs,
    eventOf: options.eventOf,
    readDesired: options.readDesired,
  })
  let knownUid = ''

  /** Begins with another cluster, or after a start: the state in memory is made anew. */
  function reset(record: ClusterRecord): void {
    if (knownUid === record.uid) return
    knownUid = record.uid
    observer.reset(record)
    memory.reset(steps.list())
  }

  async function finish(record: ClusterRecord): Promise<void> {
    await runner.forget(steps.list())
    await options.release(record)
    database.transaction(() => {
      parts.packs.forget()
      steps.clear()
      store.remove()
      revisions.clear()
      add(record, { reason: 'Deleted', message: `the cluster ${record.name} is deleted` })
    })
    observer.forget()
    knownUid = ''
    onStatus()
    await options.removeFiles(record)
  }

  /**
   * The revision to begin now. A change of the version of Kubernetes is good, or taken back, before it; one that is stuck blocks none.
   */
  const following = ({ verdict, observed }: Observation): Revision | undefined =>
    observed.engine.change && verdict.kind !== 'stuck' ? undefined : activation.next()

  /** Begins another revision, where one waits or the present one has failed. @returns whether it did */
  async function turnTo(record: ClusterRecord, observation: Observation): Promise<boolean> {
    const { verdict, observed } = observation
    const { engine } = observed
    if (verdict.kind === 'back') {
      const version = engine.change?.from ?? engine.version
      await activation.goBack(record, whyBack(record, verdict.reason, observation), version)
    } else {
      const revision = following(observation)
      if (!revision) return false
      await activation.begin(record, revision)
    }
    knownUid = ''
    onStatus()
    return true
  }

  function whyBack(
    { sensitive }: ClusterRecord,
    reason: string,
    { desired, observed, stages }: Observation,
  ): string {
    const planned = new Set(stages.flat().map(({ key }) => key))
    const left = steps.list().filter(({ key }) => planned.has(key))
    return createHideOf(sensitive)(whyLate({ reason, desired, observed, steps: left }))
  }

  /** @returns the wait before the next turn, milliseconds */
  async function turn(): Promise<number> {
    const record = store.current()
    if (!record) return Infinity
    reset(record)
    if (await work.resume(record)) return 0
    const desired = await options.readDesired(record)
    const observation = await observer.observe(desired)
    const now = store.current()
    // A deletion may have been asked for since the plan was made.
    if (!observation || now?.deleteRequestedAt !== record.deleteRequestedAt) return 0
    const { stages } = observation
    if (isDeleting(now)) {
      if (stages.length === 0) {
        await finish(now)
        return 0
      }
    } else if (await turnTo(now, observation)) return 0
    const { stages: open, asideMs } = withoutAside(stages, memory.waitMs)
    const next = nextOf(open, memory.of(open[0], steps.list()))
    if (next && 'step' in next) {
      await work.run(now, desired, next.step)
      return 0
    }
    if (next && 'again' in next) {
      // All steps of the stage were done, but the host does not show it, which may take a moment.
      if (memory.again(next.again.key)) work.fail(now, next.again, endedInVain)
      return pauses.moving
    }
    const { phase, health } = observer.status(now)
    const isCalm = phase === 'Running' && health.status === 'Healthy'
    // While a step waits for its next try, pods come and go.
    const isResting = phase === 'Failed' && observation.observed.engine.api !== 'answers'
    const pauseMs = isCalm ? pauses.healthy : isResting ? pauses.failed : pauses.moving
    return Math.min(next?.waitMs ?? Infinity, asideMs, pauseMs, activation.waitMs())
  }

  const alarm = createAlarm(stopping, pauses.least)
  // A function, because the compiler assumes that a property does not change after a check.
  const isStopping = () => stopping.aborted
  const wake = () => {
    alarm.ring()
    const record = store.current()
    if (record && isDeleting(record)) work.makeWay()
  }

  async function loop(): Promise<void> {
    let errors = 0
    while (!isStopping()) {
      let pauseMs: number
      try {
        pauseMs = await turn()
        errors = 0
      } catch (error) {
        if (isStopping()) return
        errors += 1
        // An observation may fail once, as on a busy host.
        if (errors > 1) observer.fail(reasonOf(error, database))
        log.error({ err: error }, 'the cluster cannot be worked on; it is tried again in a moment')
        pauseMs = errors > 1 ? pauses.failed : pauses.moving
      }
      await alarm.pause(pauseMs)
    }
  }

  let running: Promise<void> | undefined
  return {
    start: () => void (running ??= loop()),
    wake,
    status() {
      const record = store.current()
      const status = record && observer.status(record)
      // An accepted write is not done yet: a client that waits for Running must not get the earlier one.
      return status?.state === 'Running' && activation.next() ? started : status
    },
    observed: () => observer.last(store.current()?.uid)?.observed,
    // Another revision that is about to begin has a time of its own.
    deadline: () => (activation.next() ? undefined : observer.deadline(store.current())),
    stopped: async () => running,
  }
}

const reasonOf = (error: unknown, { sql }: Database) =>
  isUnwritable(error)
    ? `the database cannot be written (${sql.location() ?? 'in memory'}: ${(error as Error).message}); ${seeDisk}`
    : (error as Error).message
