import { existsSync } from 'node:fs'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { LastingRun, LastingRuns } from '../system/lasting/runs.ts'
import type { Logger } from '../system/log.ts'
import { findCopy } from './cluster-copy.ts'
import type { ClusterStore } from './cluster-store.ts'
import type { EventLog } from './events/event-log.ts'
import { everyStep, type PlanParts } from './plan.ts'
import { readWanted } from './read-generation.ts'
import type { RevisionStore } from './revisions/revision-store.ts'
import type { Sealed } from './sealed.ts'
import type { Step } from './step.ts'
import { runNameOf } from './steps/run-name.ts'
import type { StepStore } from './steps/step-store.ts'

export interface AdoptionOptions {
  /** `<state>/cluster` */
  readonly folder: string
  /** The record of the host: it is there from the first step of a cluster to the last one of its deletion. */
  readonly hostRecord: string
  readonly database: Database
  readonly store: ClusterStore
  readonly revisions: RevisionStore
  readonly steps: StepStore
  readonly runs: Pick<LastingRuns, 'find'>
  readonly parts: PlanParts
  readonly sealed: Sealed
  readonly events: Pick<EventLog, 'add'>
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Takes over the cluster that is on this host and that the database does not know, since it was lost, from the folder of the cluster. Only
 * for the start, before the loop and before requests.
 * @returns whether the folders of clusters may be told from leftovers: false where there is a cluster that could not be taken over
 */
export async function adopt(options: AdoptionOptions): Promise<boolean> {
  const { folder, hostRecord, database, store, revisions, steps, runs, parts, sealed, events, clock, log } =
    options
  if (store.current() || !existsSync(hostRecord)) return true
  const found = await findCopy(folder, sealed)
  if (!found) {
    log.error(
      { folder },
      'the database was lost, and the folder of the cluster cannot be read: Kubernetes continues on this host, and edgehostd does not know it; restore the state folder from a backup, or remove Kubernetes by hand with kubeadm reset',
    )
    return false
  }
  const { cluster, plain, losses } = found
  const { uid, name, folder: generation } = cluster
  const wanted = await readWanted({ ...cluster, deleteRequestedAt: 0 })
  const begun: { readonly step: Step; readonly run: LastingRun }[] = []
  for (const step of everyStep(parts, wanted)) {
    const run = step.work.kind === 'action' ? await runs.find(runNameOf(step.key)) : undefined
    if (run) begun.push({ step, run })
  }
  // Their files stay until the deletion has ended.
  const isDeleting = begun.some(({ step }) => step.isDeletion)
  const message = [
    `the database was lost; the cluster ${name} is taken over from ${generation}${isDeleting ? ', and its deletion continues' : ', and its packs are applied again'}`,
    ...losses,
  ].join('; ')
  log.warn({ cluster: name, uid }, message)
  database.transaction(() => {
    store.add(cluster)
    revisions.add({
      ...{ ...cluster, by: '', origin: 'create', plain, outcome: 'applying', scheduleAt: null },
    })
    if (isDeleting) store.requestDeletion(clock.now())
    // Their programs may still run, and no other step may begin beside them.
    for (const { step, run } of begun) if (!run.end) steps.begin(step, run.startedAt)
    events.add({ clusterUid: uid, reason: 'Adopted', message })
  })
  return true
}
