import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { AddEvent } from '../add-event.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import type { Revision } from '../revisions/revision.ts'
import { lineOf } from '../revisions/shown.ts'
import type { RevisionStore } from '../revisions/revision-store.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import type { StepStore } from '../steps/step-store.ts'

export interface ActivationOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'activate' | 'noteRan'>
  readonly revisions: RevisionStore
  readonly steps: Pick<StepStore, 'list' | 'clear'>
  readonly runner: Pick<StepRunner, 'forget'>
  readonly add: AddEvent
  readonly clock: Pick<Clock, 'now'>
}

/** Changes which revision the loop makes true; no step may run meanwhile. */
export interface Activation {
  /** The revision that is to be begun now; undefined where none waits, or its time has not come. */
  next(): Revision | undefined
  /** Milliseconds until the time of a revision that waits for it; Infinity where none does. */
  waitMs(): number
  begin(record: ClusterRecord, revision: Revision): Promise<void>
  /** The active revision has failed: the last good one is wanted again. */
  goBack(record: ClusterRecord, reason: string): Promise<void>
  /** The cluster is Running with the active revision. To be called in a transaction. */
  noteGood(record: ClusterRecord): void
}

export function createActivation(options: ActivationOptions): Activation {
  const { database, store, revisions, steps, runner, add, clock } = options

  function waiting(): Revision | undefined {
    const newest = revisions.newest()
    return newest?.outcome === 'waiting' ? newest : undefined
  }

  async function change(work: () => void): Promise<void> {
    // Steps of another revision are history; some have the same keys.
    await runner.forget(steps.list())
    database.transaction(() => {
      work()
      steps.clear()
    })
  }

  return {
    next() {
      const revision = waiting()
      return revision && (revision.scheduleAt ?? 0) <= clock.now() ? revision : undefined
    },
    waitMs: () => Math.max((waiting()?.scheduleAt ?? Infinity) - clock.now(), 0),
    begin: (record, revision) =>
      change(() => {
        const at = clock.now()
        if (revisions.find(record.generation)?.outcome === 'applying')
          revisions.note(record.generation, 'superseded', { at })
        revisions.note(revision.generation, 'applying')
        store.activate(revision, at)
        add(record, { reason: 'UpdateStarted', message: lineOf(revision) })
      }),
    goBack: (record, reason) =>
      change(() => {
        const at = clock.now()
        const good = revisions.find(record.goodGeneration)
        if (!good) throw new Error(`revision ${record.goodGeneration} is not stored`)
        revisions.note(record.generation, 'failed', { at, reason })
        store.activate(good, at)
        add(record, { reason: 'UpdateFailed', message: `revision ${record.generation}: ${reason}` })
        add(record, {
          reason: 'RollbackStarted',
          message: `revision ${good.generation} is applied again: Kubernetes ${good.summary.kubernetes.version}`,
        })
      }),
    noteGood(record) {
      const { generation, goodGeneration } = record
      const at = clock.now()
      store.noteRan(generation)
      if (generation !== goodGeneration) {
        revisions.note(generation, 'good', { at })
        if (goodGeneration !== 0)
          add(record, { reason: 'Updated', message: `the cluster runs with revision ${generation}` })
        return
      }
      const failed = revisions.list().find(({ outcome }) => outcome === 'failed')
      if (!failed) return
      revisions.note(failed.generation, 'rolledBack', { at, reason: failed.reason })
      add(record, {
        reason: 'RolledBack',
        message: `the cluster runs with revision ${generation} again, since revision ${failed.generation} failed: ${failed.reason}`,
      })
    },
  }
}
