import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { uidOf } from '../base/uid.ts'
import { readJsonFile, replaceFile } from '../system/files.ts'
import type { ClusterRecord, NewCluster, ClusterStore } from './cluster-store.ts'
import { preparedFiles, readDesired } from './desired/prepared.ts'
import type { Sealed, RevisionStore } from './desired/revisions.ts'
import type { ClusterSummary, DesiredState } from './desired/desired-state.ts'
import { existsSync } from 'node:fs'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { LastingRun, LastingRuns } from '../system/lasting/runs.ts'
import type { Logger } from '../system/log.ts'
import type { EventLog } from './events/event-log.ts'
import { everyStep, type PlanParts } from './loop/plan.ts'
import type { Step } from './loop/step.ts'
import { runNameOf } from './loop/step-runner.ts'
import type { StepStore } from './loop/step-store.ts'

/** Stored copy of a cluster, beside its files: the cluster is adopted from it where the database was lost. */
interface ClusterCopy {
  readonly uid: string
  readonly name: string
  readonly generation: number
  readonly folder: string
  readonly summary: ClusterSummary
  /** With sensitive values masked. */
  readonly posted: NewCluster['posted']
  /** Sensitive values and the posted configuration in plain text, sealed; base64. Of an earlier version only the values. */
  readonly sealed: string
  readonly mark: string
  readonly createdAt: number
}

interface FoundCopy {
  readonly cluster: NewCluster
  /** The posted configuration, in plain text; undefined where it is lost. */
  readonly plain: NewCluster['posted'] | undefined
  /** Unreadable parts, for operators; empty where all could be read. */
  readonly losses: readonly string[]
}

const copyFile = 'cluster.json'

/** Sealed part of the copy. */
interface Secrets {
  readonly plain?: NewCluster['posted'] | undefined
  readonly sensitive: readonly string[]
}

/** Writes the copy of the active revision into the folder of the cluster. @param plain the posted configuration, in plain text */
export async function writeCopy(
  cluster: NewCluster,
  plain: NewCluster['posted'] | undefined,
  sealed: Sealed,
): Promise<void> {
  const { uid, name, generation, folder, summary, posted, sensitive, mark, at } = cluster
  const copy: ClusterCopy = {
    uid,
    name,
    generation,
    folder,
    summary,
    posted,
    createdAt: at,
    sealed: sealed.seal(JSON.stringify({ plain, sensitive } satisfies Secrets)).toString('base64'),
    mark: Buffer.from(mark).toString('base64'),
  }
  await replaceFile(join(dirname(folder), copyFile), JSON.stringify(copy), 0o600)
}

/** Writes the copy where the one that is there is not of the active revision. */
export async function followCopy(
  record: ClusterRecord,
  plain: NewCluster['posted'] | undefined,
  sealed: Sealed,
): Promise<void> {
  const copy = await readJson<ClusterCopy>(join(dirname(record.folder), copyFile))
  if (copy?.generation !== record.generation || copy.folder !== record.folder)
    await writeCopy({ ...record, at: record.createdAt }, plain, sealed)
}

/**
 * Finds the cluster in the folder of the room; of several the newest that can be read.
 * @param folder `<state>/cluster`
 * @returns undefined where no folder of a cluster can be read
 */
async function findCopy(folder: string, sealed: Sealed): Promise<FoundCopy | undefined> {
  // They begin with their time.
  const uids = (await readdir(folder)).filter((name) => uidOf(name) !== undefined).sort()
  for (const uid of uids.reverse()) {
    const found = (await readCopy(join(folder, uid), sealed)) ?? (await readBare(join(folder, uid)))
    if (found) return found
  }
  return undefined
}

async function readCopy(folder: string, sealed: Sealed): Promise<FoundCopy | undefined> {
  const copy = await readJson<ClusterCopy>(join(folder, copyFile))
  if (!copy) return undefined
  const { uid, name, generation, summary, posted, createdAt } = copy
  const opened = sealed.open(Buffer.from(copy.sealed, 'base64'))
  const found = JSON.parse(opened ?? '[]') as Secrets | readonly string[]
  const secrets: Secrets = 'sensitive' in found ? found : { sensitive: found }
  return {
    plain: secrets.plain,
    cluster: {
      uid,
      name,
      generation,
      folder: copy.folder,
      summary,
      posted,
      at: createdAt,
      sensitive: secrets.sensitive,
      mark: Buffer.from(copy.mark, 'base64'),
    },
    losses: opened === undefined ? [lostSecret] : [],
  }
}

/** Without the copy the cluster is known by its desired state. */
async function readBare(folder: string): Promise<FoundCopy | undefined> {
  const generations = (await readdir(folder)).filter((name) => /^\d+$/.test(name))
  const newest = Math.max(...generations.map(Number))
  const desired = await readJson<DesiredState>(join(folder, String(newest), preparedFiles.desired))
  if (!desired) return undefined
  const { uid, name, generation, kubernetes, node } = desired
  return {
    plain: undefined,
    cluster: {
      uid,
      name,
      generation,
      folder: desired.folder,
      summary: {
        kubernetes: { pack: kubernetes.pack, version: kubernetes.version },
        node,
        definition: { name: 'unknown', version: 'unknown', sha256: '' },
      },
      posted: { metadata: { name } },
      sensitive: [],
      mark: new Uint8Array(),
      at: Date.now(),
    },
    losses: [`${join(folder, copyFile)} cannot be read, so what was posted is lost`, lostSecret],
  }
}

const lostSecret =
  'its sensitive values cannot be told from others any more, so messages of Kubernetes that quote them show them; to change that, delete the cluster and create it again'

const readJson = <T>(path: string): Promise<T | undefined> => readJsonFile<T>(path).catch(() => undefined)

interface AdoptionOptions {
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
 * Takes over the cluster of this host, which the lost database does not know any more, from the folder of the cluster. Only for the start,
 * before the loop and before requests.
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
  const desired = await readDesired({ ...cluster, deleteRequestedAt: 0 })
  const started: { readonly step: Step; readonly run: LastingRun }[] = []
  for (const step of everyStep(parts, desired)) {
    const run = step.work.kind === 'action' ? await runs.find(runNameOf(step.key)) : undefined
    if (run) started.push({ step, run })
  }
  // Their files stay until the deletion has ended.
  const isDeleting = started.some(({ step }) => step.isDeletion)
  const message = [
    `the database was lost; the cluster ${name} is taken over from ${generation}${isDeleting ? ', and its deletion continues' : ', and its packs are applied again'}`,
    ...losses,
  ].join('; ')
  log.warn({ cluster: name, uid }, message)
  database.transaction(() => {
    store.add(cluster)
    revisions.add({
      ...cluster,
      by: '',
      origin: 'create',
      plain,
      outcome: 'applying',
      scheduleAt: null,
    })
    if (isDeleting) store.requestDeletion(clock.now())
    // Their programs may still run, and no other step may start beside them.
    for (const { step, run } of started) if (!run.end) steps.begin(step, run.startedAt)
    events.add({ clusterUid: uid, reason: 'Adopted', message })
  })
  return true
}
