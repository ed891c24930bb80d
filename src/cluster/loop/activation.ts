import { copyFile, link, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import { syncFolder, syncTree } from '../../system/files.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import { preparedFiles, readProfiles, readDesiredOf } from '../desired/prepared.ts'
import type { NewRevision, Revision, RevisionStore } from '../desired/revisions.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import type { Lock } from '../../base/lock.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { AddEvent } from '../events/event-log.ts'
import { lineOf } from '../desired/revision-document.ts'
import type { StepRunner } from './step-runner.ts'
import type { StepStore } from './step-store.ts'
import type { CopyObserved } from './observed.ts'

/** The Kubernetes that stays, and the last good revision, of which all else comes. */
interface WayBackParts {
  readonly good: Revision
  readonly kept: Revision
}

/**
 * The revision that brought the Kubernetes that runs, or is being restored: the active one, or the last started one before it; pure.
 * @param revisions the newest first
 * @returns undefined where none that is kept has that version
 */
function broughtBy(
  revisions: readonly Revision[],
  { generation }: Pick<ClusterRecord, 'generation'>,
  version: string,
): Revision | undefined {
  const having = revisions.filter(({ summary }) => summary.kubernetes.version === version)
  return having.find((each) => each.generation === generation) ?? having.find(wasStarted)
}

const wasStarted = ({ outcome, endedAt }: Revision) =>
  outcome !== 'waiting' && outcome !== 'held' && endedAt !== null

/** Desired state of the good revision, with the Kubernetes of another; pure. */
const withKubernetes = (
  good: DesiredState,
  { kubernetes }: Pick<DesiredState, 'kubernetes'>,
): DesiredState => ({
  ...good,
  kubernetes,
})

/** The profiles of the good revision, with the Kubernetes pack as it runs, for the API; pure. */
function withKubernetesPack(
  good: readonly ClusterProfileDetail[],
  kept: readonly ClusterProfileDetail[],
): ClusterProfileDetail[] {
  const isKubernetes = ({ layer }: { readonly layer: string }) => layer === 'k8s'
  const [running] = kept.flatMap(({ packs }) => packs.filter(isKubernetes))
  return good.map((profile) => ({
    ...profile,
    packs: profile.packs.map((pack) => (running && isKubernetes(pack) ? running : pack)),
  }))
}

/**
 * Makes a revision of the packs, values and settings of the good one and of the Kubernetes of the other, with a folder as any other has, so
 * that every reader of revisions sees a whole one. Its folder is there, whole, or not at all.
 * @param order.generation its number
 * @throws Error with a reason for operators where a folder of the two cannot be read; the system's error where it cannot be written
 */
export async function makeWayBack(
  record: Pick<ClusterRecord, 'uid' | 'name'>,
  { good, kept, generation, at }: WayBackParts & { readonly generation: number; readonly at: number },
): Promise<NewRevision> {
  const folder = join(dirname(good.folder), String(generation))
  const [ofGood, ofKept] = await Promise.all([readDesiredOf(record, good), readDesiredOf(record, kept)])
  const desired = { ...withKubernetes(ofGood, ofKept), generation, folder }
  const profiles = withKubernetesPack(await readProfiles(good), await readProfiles(kept))
  const staging = `${folder}.tmp`
  // Leftovers of a killed daemon.
  for (const each of [staging, folder]) await rm(each, { recursive: true, force: true })
  const own: readonly string[] = [preparedFiles.desired, preparedFiles.details]
  await linkTree(good.folder, staging, own)
  await writeFile(join(staging, preparedFiles.desired), JSON.stringify(desired), { mode: 0o600 })
  await writeFile(join(staging, preparedFiles.details), JSON.stringify(profiles), { mode: 0o600 })
  await syncTree(staging)
  await rename(staging, folder)
  await syncFolder(dirname(folder))
  return {
    generation,
    at,
    by: '',
    origin: 'goingBack',
    folder,
    outcome: 'applying',
    scheduleAt: null,
    posted: good.posted,
    plain: good.plain,
    mark: good.mark,
    // The configuration of Kubernetes may contain values of the other one.
    sensitive: [...new Set([...good.sensitive, ...kept.sensitive])],
    summary: {
      ...good.summary,
      kubernetes: kept.summary.kubernetes,
      kubernetesOf: kept.summary.kubernetesOf ?? kept.generation,
      // Which of them Kubernetes needs is not known: the next write releases the others.
      content: [...new Set([...(good.summary.content ?? []), ...(kept.summary.content ?? [])])],
    },
  }
}

/** Gives the files of a folder, which are never changed, second names in another one: that takes no room. */
async function linkTree(from: string, to: string, leftOut: readonly string[] = []): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (leftOut.includes(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await linkTree(source, target)
    else await link(source, target).catch(() => copyFile(source, target))
  }
}

interface ActivationOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'activate' | 'noteRan'>
  readonly revisions: RevisionStore
  readonly steps: Pick<StepStore, 'list' | 'clear'>
  readonly runner: Pick<StepRunner, 'forget'>
  /** One write at a time: a way back may be a revision of its own. */
  readonly inTurn: Lock
  readonly add: AddEvent
  /** Whether the host does something that a change of the cluster has to wait for. */
  readonly isHeld: () => boolean
  readonly clock: Pick<Clock, 'now'>
}

/** Changes the revision that the loop applies; no step may run meanwhile. */
interface Activation {
  /** The revision to start now; undefined where none waits, its time has not come, or the host is busy with something else. */
  next(): Revision | undefined
  /** Milliseconds until the time of a revision that waits for it; Infinity where none does. */
  waitMs(): number
  /** Whether the active revision is the last good one again, or its packs: it is not taken back itself. */
  isGoingBack(record: Pick<ClusterRecord, 'generation' | 'goodGeneration'>): boolean
  begin(record: ClusterRecord, revision: Revision): Promise<void>
  /**
   * The active revision has failed: the last good one is desired again; where another version of Kubernetes runs, all of it but Kubernetes.
   * @param version of the Kubernetes that runs or is being restored
   */
  goBack(record: ClusterRecord, reason: string, version: string): Promise<void>
  /** The cluster is Running with the active revision. To be called in a transaction. */
  noteGood(record: ClusterRecord): void
}

export function createActivation(options: ActivationOptions): Activation {
  const { database, store, revisions, steps, runner, inTurn, add, isHeld, clock } = options

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
      return revision && (revision.scheduleAt ?? 0) <= clock.now() && !isHeld() ? revision : undefined
    },
    waitMs() {
      const leftMs = Math.max((waiting()?.scheduleAt ?? Infinity) - clock.now(), 0)
      return leftMs === 0 && isHeld() ? Infinity : leftMs
    },
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
      // No write may take the number of the new revision, and no file sync remove its folder, before it is stored.
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

/** The newest copy of the version of Kubernetes of a revision; undefined where none is kept. Pure. */
export const copyFor = (
  copies: readonly CopyObserved[],
  { summary }: Pick<Revision, 'summary'>,
): CopyObserved | undefined => copies.find(({ from }) => from === summary.kubernetes.version)

/**
 * Generations of the revisions that ran when copies were made: programs and images of them are needed as long as the copies. Pure.
 * @param revisions the newest first
 */
export const generationsOf = (
  copies: readonly CopyObserved[],
  revisions: readonly Pick<Revision, 'generation' | 'summary'>[],
): readonly number[] =>
  copies.flatMap(({ from, generation: before }) => {
    const found = revisions.find(
      ({ generation, summary }) => generation < before && summary.kubernetes.version === from,
    )
    return found ? [found.generation] : []
  })

/** Copies on this host, for changes. */
export const createCopies = (
  engine: { copies(): Promise<readonly CopyObserved[]> },
  revisions: Pick<RevisionStore, 'list'>,
) => ({
  /** Generations to which a copy of Kubernetes can go back. */
  copies: async () => generationsOf(await engine.copies(), revisions.list()),
  /** Time of the copy to which a revision can go back; undefined where none is kept. */
  copyTime: async (revision: Pick<Revision, 'summary'>) => copyFor(await engine.copies(), revision)?.at,
})
