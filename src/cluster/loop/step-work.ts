import type { Clock } from '../../system/clock.ts'
import type { Stage, StepHistory } from './plan.ts'
import type { StepRecord, StepStore } from './step-store.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import type { Database } from '../../store/database.ts'
import type { Logger } from '../../system/log.ts'
import type { AddEvent, NewClusterEvent } from '../events/event-log.ts'
import { renewalStep, type Step } from './step.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import type { EngineEvent } from '../engine/engine.ts'
import type { Observer } from './observer.ts'
import type { PackWork } from '../packs/pack-work.ts'
import type { StepContext, StepRunEnd, StepRunner } from './step-runner.ts'
import type { DesiredState } from '../desired/desired-state.ts'

const firstMs = 10_000
const longestMs = 600_000

/**
 * Wait before a failed step is tried again, milliseconds: 10 s, then twice as long each time, up to 10 minutes, with a fifth more or less.
 * @param failures 1 after the first failure
 * @param random 0 to 1
 */
export function backOffMs(failures: number, random: number): number {
  const whole = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 16))
  return Math.round(whole * (0.8 + 0.4 * random))
}

/**
 * Rest of a wait that was stored before a restart. A clock that was set since, forwards or back, makes it neither longer than it was nor
 * negative.
 * @param startedAt milliseconds since 1970, as is `now`
 */
export function leftOfWaitMs(startedAt: number, waitMs: number, now: number): number {
  return Math.min(waitMs, Math.max(0, startedAt + waitMs - now))
}

/** Memory of the loop on the steps of a plan, beside their records. */
interface StepMemory {
  /** Begins anew with the stored records. */
  reset(records: readonly StepRecord[]): void
  /** History of the steps of the first stage, which restarts when another one comes first. */
  of(stage: Stage | undefined, records: readonly StepRecord[]): StepHistory
  /** Milliseconds until a step may be tried; 0 or less for one that need not wait. */
  waitMs(key: string): number
  done(key: string): void
  failed(key: string, retryMs: number): void
  /**
   * Restarts the first stage, all of whose steps were done.
   * @param key of its last step
   * @returns whether that was so too often, and is counted anew
   */
  again(key: string): boolean
}

const mostPasses = 3

/** Failure of a step that `again` was called for too often. */
export const endedInVain = `it ended ${mostPasses} times, but its work is still to be done`

/** @param heldMs time that a renewal of certificates waits at least, now: its address may not be kept; 0 for none */
export function createStepMemory(clock: Clock, heldMs: () => number = () => 0): StepMemory {
  /** Monotonic time at which a failed step may be tried again, by key. */
  const dueAt = new Map<string, number>()
  /** Steps that were done since the first stage of the plan was gone through from its beginning. */
  const done = new Set<string>()
  /** Passes through the first stage without its becoming empty. */
  let passes = 0
  let stuckAt = ''

  const waitMs = (key: string) => {
    const leftMs = (dueAt.get(key) ?? 0) - clock.monotonic()
    return key === renewalStep ? Math.max(leftMs, heldMs()) : leftMs
  }
  return {
    waitMs,
    reset(records) {
      dueAt.clear()
      done.clear()
      passes = 0
      for (const { key, state, endedAt, retryMs } of records)
        if (state === 'failed')
          dueAt.set(key, clock.monotonic() + leftOfWaitMs(endedAt ?? 0, retryMs ?? 0, clock.now()))
    },
    of(stage, records) {
      const first = new Set(stage?.map(({ key }) => key))
      for (const key of done) if (!first.has(key)) done.delete(key)
      if (done.size === 0 && passes > 0 && !first.has(stuckAt)) passes = 0
      const failed = new Set(records.flatMap(({ key, failures }) => (failures > 0 ? [key] : [])))
      return {
        waitMs,
        isDone: (key) => done.has(key),
        hasFailed: (key) => failed.has(key),
      }
    },
    done(key) {
      dueAt.delete(key)
      done.add(key)
    },
    failed(key, retryMs) {
      dueAt.set(key, clock.monotonic() + retryMs)
      // Results of the steps before it may be gone at the next try.
      done.clear()
    },
    again(key) {
      stuckAt = key
      done.clear()
      passes = (passes + 1) % mostPasses
      return passes === 0
    },
  }
}

interface StepWorkOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'endRenewal'>
  readonly steps: StepStore
  readonly runner: StepRunner
  readonly packs: Pick<PackWork, 'noteStarted' | 'noteDone' | 'doubt'>
  readonly observer: Pick<Observer, 'during'>
  readonly memory: Pick<StepMemory, 'done' | 'failed'>
  /** The event of a line of a step; undefined for any other line. */
  readonly eventOf: (step: Pick<Step, 'key'>, line: string) => EngineEvent | undefined
  readonly add: AddEvent
  /** Reads the desired state from the folder of the cluster. @throws Error with a reason for operators */
  readonly readDesired: (record: ClusterRecord) => Promise<DesiredState>
  /** A step has ended. */
  readonly onEnd: (end: 'done' | 'failed' | 'cut-off', durationMs: number) => void
  /** 0 to 1. */
  readonly random: () => number
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Does steps, emits their events, and stores their ends. */
interface StepWork {
  run(record: ClusterRecord, desired: DesiredState, step: Step): Promise<void>
  /**
   * Takes up steps of a former process of the daemon: their programs may still run.
   * @returns whether there were any
   */
  resume(record: ClusterRecord): Promise<boolean>
  /** Notes that a step failed, and when it is tried again. */
  fail(record: ClusterRecord, step: StepName, reason: string): void
  /** Ends the running step, unless it is a step of a deletion. @param isOf whether to end a step of that pack; every step by default */
  makeWay(isOf?: (pack: string | undefined) => boolean): void
}

// Characters: helm may quote whole manifests.
const longestReason = 1_000

type StepName = Pick<Step, 'key' | 'title' | 'pack'>
type StepUnderWay = StepName & { readonly isDeletion: boolean }

export function createStepWork(options: StepWorkOptions): StepWork {
  const { database, store, steps, runner, packs, observer, memory, add, onEnd, stopping, clock, log } =
    options
  /** Ends the running step, unless it belongs to a deletion. */
  let current: { readonly cut: AbortController; readonly pack: string | undefined } | undefined

  /** Runs a step, or follows it to its end, and stores the end. */
  async function settle(
    record: ClusterRecord,
    desired: DesiredState | undefined,
    step: StepUnderWay,
    work: (context: StepContext) => Promise<StepRunEnd>,
  ): Promise<void> {
    const { key, title, pack, isDeletion } = step
    const cut = new AbortController()
    const hide = createHideOf(record.sensitive)
    const about = aboutOf(step)
    const onLine: StepContext['onLine'] = (line, cursor) => {
      const event =
        options.eventOf(step, line) ??
        (cursor === undefined ? ({ reason: 'StepProgress', message: line } as const) : undefined)
      if (!event) return
      database.transaction(() => {
        add(record, { ...about, ...event })
        if (cursor !== undefined) steps.moveCursor(key, cursor)
      })
    }
    current = isDeletion ? undefined : { cut, pack }
    const startedAt = clock.monotonic()
    let end: StepRunEnd
    try {
      // The deletion may have been asked for while this step was chosen.
      if (!isDeletion && store.current()?.deleteRequestedAt !== null) cut.abort()
      end = await observer.during(desired, () => work({ cut: cut.signal, stopping, onLine, hide }))
    } catch (error) {
      if (stopping.aborted) return
      log.error({ step: hide(key), stack: hide(String((error as Error).stack)) }, 'a step could not be run')
      end = { kind: 'failed', reason: (error as Error).message }
    } finally {
      current = undefined
    }
    if (end === undefined) return
    const durationMs = clock.monotonic() - startedAt
    if (end.kind === 'done') {
      const installed = desired?.packs.find(({ id }) => id === pack)
      database.transaction(() => {
        steps.done(key, clock.now())
        if (installed) packs.noteDone(installed, step)
        if (key === renewalStep) store.endRenewal(clock.now())
        add(record, { ...about, reason: 'StepDone', message: title })
      })
      memory.done(key)
      log.info({ step: hide(key), durationMs: Math.round(durationMs) }, 'a step of the cluster is done')
      onEnd('done', durationMs)
    } else if (end.kind === 'unknown') {
      database.transaction(() => {
        steps.cutOff(key)
        if (cut.signal.aborted) add(record, { ...about, reason: 'StepStopped', message: title })
        else
          add(record, {
            ...about,
            reason: 'StepCutOff',
            message: `${title}: it was cut off; the host is looked at`,
          })
      })
      onEnd('cut-off', durationMs)
    } else {
      fail(record, step, end.reason)
      onEnd('failed', durationMs)
    }
  }

  function fail(record: ClusterRecord, step: StepName, given: string): void {
    const { key, title, pack } = step
    // Masked before it is cut: a part of a value would not be known again.
    const hide = createHideOf(record.sensitive)
    const hidden = hide(given)
    const reason = hidden.length > longestReason ? `${hidden.slice(0, longestReason)}…` : hidden
    const about = aboutOf(step)
    const retryMs = backOffMs((steps.find(key)?.failures ?? 0) + 1, options.random())
    const message = `${title}: ${reason}; tried again in ${Math.round(retryMs / 1_000)} s`
    memory.failed(key, retryMs)
    log.warn({ step: hide(key), reason, retryMs }, 'a step of the cluster failed and is tried again')
    database.transaction(() => {
      steps.failed({ key, title, pack }, { at: clock.now(), reason, retryMs })
      add(record, { ...about, reason: 'StepFailed', message })
      if (pack !== undefined) add(record, { ...about, reason: 'PackFailed', message: `${title}: ${reason}` })
    })
  }

  return {
    async run(record, desired, step) {
      const { key, title, pack } = step
      const about = aboutOf(step)
      const stored = steps.list()
      const failures = stored.find((each) => each.key === key)?.failures ?? 0
      const isFirstOfPack = pack !== undefined && !stored.some((each) => each.pack === pack)
      const ofPack = desired.packs.find(({ id }) => id === pack)
      if (isFirstOfPack && ofPack)
        add(record, { ...about, reason: 'PackApplying', message: `${pack} is being applied` })
      if (isFirstOfPack && !ofPack)
        add(record, { ...about, reason: 'PackRemoving', message: `${pack} is being taken away` })
      if (ofPack) packs.noteStarted(ofPack, step)
      // Before it begins: it may end without the daemon. No step of a pack comes before its end.
      if (step.isRestoration) packs.doubt()
      add(record, { ...about, reason: failures > 0 ? 'StepRetried' : 'StepStarted', message: title })
      const underWay = { ...step, isDeletion: step.isDeletion ?? false }
      await settle(record, desired, underWay, (context) => runner.run(step, context))
    },
    async resume(record) {
      const started = steps.list().filter(({ state }) => state === 'running')
      for (const each of started) {
        if (stopping.aborted) return true
        const { key, title, pack, kind } = each
        const isDeletion = each.isDeletion === 1
        const step = { key, title, isDeletion, ...(pack === '' ? {} : { pack }) }
        if (kind === 'action') add(record, { reason: 'StepFoundAgain', message: title, step: key })
        const desired = await options.readDesired(record).catch(() => undefined)
        await settle(record, desired, step, (context) => runner.resume(each, context))
      }
      return started.length > 0
    },
    fail,
    makeWay(isOf = () => true) {
      if (current && isOf(current.pack)) current.cut.abort()
    },
  }
}

const aboutOf = ({ key, pack }: StepName): Pick<NewClusterEvent, 'step' | 'object'> => ({
  step: key,
  ...(pack === undefined ? {} : { object: { kind: 'pack', name: pack } }),
})
