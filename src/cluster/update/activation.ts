import type { Lock } from '../../base/lock.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { AddEvent } from '../add-event.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import type { NewRevision, Revision } from '../revisions/revision.ts'
import { lineOf } from '../revisions/shown.ts'
import type { RevisionStore } from '../revisions/revision-store.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import type { StepStore } from '../steps/step-store.ts'
import { broughtBy, makeWayBack } from './way-back.ts'

export interface ActivationOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'activate' | 'noteRan'>
  readonly revisions: RevisionStore
  readonly steps: Pick<StepStore, 'list' | 'clear'>
  readonly runner: Pick<StepRunner, 'forget'>
  /** One write at a time: a way back may be a revision of its own. */
  readonly inTurn: Lock
  readonly add: AddEvent
  readonly clock: Pick<Clock, 'now'>
}

/** Changes which revision the loop makes true; no step may run meanwhile. */
export interface Activation {
  /** The revision that is to be begun now; undefined where none waits, or its time has not come. */
  next(): Revision | undefined
  /** Milliseconds until the time of a revision that waits for it; Infinity where none does. */
  waitMs(): number
  /** Whether the active revision is the last good one again, or its packs: it is not taken back itself. */
  isGoingBack(record: Pick<ClusterRecord, 'generation' | 'goodGeneration'>): boolean
  begin(record: ClusterRecord, revision: Revision): Promise<void>
  /**
   * The active revision has failed: the last good one is wanted again; where another version of Kubernetes runs, all of it but Kubernetes.
   * @param version of the Kubernetes that runs or is being restored
   */
  goBack(record: ClusterRecord, reason: string, version: string): Promise<void>
  /** The cluster is Running with the active revision. To be called in a transaction. */
  noteGood(record: ClusterRecord): void
}

export function createActivation(options: ActivationOptions): Activation {
  const { database, store, revisions, steps, runner, inTurn, add, clock } = options

  function waiting(): Revision | undefined {
    const pending = revisions.pending()
    return pending?.outcome === 'waiting' ? pending : undefined
  }

  async function change(work: () => void): Promise<void> {
    // Steps of another revision are history; some have the same keys.
    await runner.forget(steps.list())
    database.transaction(() => {
      work()
      steps.clear()
    })
  }

  /** The active revision has failed. @param next takes its place */
  const fail = (record: ClusterRecord, reason: string, next: Revision | NewRevision, message: string) =>
    change(() => {
      const at = clock.now()
      revisions.note(record.generation, 'failed', { at, reason })
      if (!revisions.find(next.generation)) revisions.add(next)
      store.activate(next, at)
      add(record, { reason: 'UpdateFailed', message: `revision ${record.generation}: ${reason}` })
      add(record, { reason: 'RollbackStarted', message })
    })

  return {
    next() {
      const revision = waiting()
      return revision && (revision.scheduleAt ?? 0) <= clock.now() ? revision : undefined
    },
    waitMs: () => Math.max((waiting()?.scheduleAt ?? Infinity) - clock.now(), 0),
    isGoingBack: ({ generation, goodGeneration }) =>
      generation === goodGeneration || revisions.find(generation)?.origin === 'goingBack',
    begin: (record, revision) =>
      change(() => {
        const at = clock.now()
        if (revisions.find(record.generation)?.outcome === 'applying')
          revisions.note(record.generation, 'superseded', { at })
        revisions.note(revision.generation, 'applying')
        store.activate(revision, at)
        add(record, { reason: 'UpdateStarted', message: lineOf(revision) })
      }),
    async goBack(record, reason, version) {
      const good = revisions.find(record.goodGeneration)
      if (!good) throw new Error(`revision ${record.goodGeneration} is not stored`)
      const { version: goodVersion } = good.summary.kubernetes
      if (goodVersion === version) {
        await fail(
          record,
          reason,
          good,
          `revision ${good.generation} is applied again: Kubernetes ${version}`,
        )
        return
      }
      // No write may take the number of the new revision, and no upkeep remove its folder, before it is stored.
      await inTurn(async () => {
        const all = revisions.list()
        const kept = broughtBy(all, record, version)
        if (!kept)
          throw new Error(
            `revision ${record.generation} failed, and no revision with Kubernetes ${version}, which runs, is kept; apply a definition with it`,
          )
        const generation = (all[0]?.generation ?? 0) + 1
        const made = await makeWayBack(record, { good, kept, generation, at: clock.now() })
        const message = `the packs, values and settings of revision ${good.generation} are applied again, as revision ${generation}; Kubernetes ${version} stays`
        await fail(record, reason, made, message)
      })
    },
    noteGood(record) {
      const { generation, goodGeneration } = record
      const at = clock.now()
      const isNew = generation !== goodGeneration
      const isWayBack = isNew && revisions.find(generation)?.origin === 'goingBack'
      store.noteRan(generation)
      if (isNew) revisions.note(generation, 'good', { at })
      if (isNew && !isWayBack) {
        if (goodGeneration !== 0)
          add(record, { reason: 'Updated', message: `the cluster runs with revision ${generation}` })
        return
      }
      const failed = revisions.list().find(({ outcome }) => outcome === 'failed')
      if (!failed) return
      const { kubernetes } = record.summary
      const what = isWayBack
        ? `the packs of revision ${goodGeneration} run again, as revision ${generation}, and Kubernetes ${kubernetes.version} stays`
        : `the cluster runs with revision ${generation} again`
      const reason = isWayBack ? `${failed.reason}; ${what}` : failed.reason
      revisions.note(failed.generation, 'rolledBack', { at, reason })
      add(record, {
        reason: 'RolledBack',
        message: `${what}, since revision ${failed.generation} failed: ${failed.reason}`,
      })
    },
  }
}
