import type { Database } from '../../store/database.ts'
import { canonicalText, readConfiguration, type HostFacts } from './configuration.ts'
import { type Accept, type Examine, type Examined, plannedSteps, summaryOf } from './acceptance.ts'
import type { PreflightProblem } from './preflight-codes.ts'
import type { DesiredSettings } from './desired-state.ts'
import { plan, type PlanParts } from '../loop/plan.ts'
import type { ClusterDryRun, ClusterConfiguration, ClusterCreated } from '../schemas.ts'
import { formatTime } from '../../base/time.ts'
import { uuidAt } from '../../base/uid.ts'
import type { Lock } from '../../base/lock.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import type { ClusterRecord, ClusterStore, NewCluster } from '../cluster-store.ts'
import { clusterErrors } from '../codes.ts'
import type { EventLog } from '../events/event-log.ts'
import type { ClusterHost } from '../host/cluster-host.ts'
import { emptyHost, noSetting, type SettingObserved, type SettingsObserved } from '../loop/observed.ts'
import type { NewRevision, Sealed } from './revisions.ts'

/** A request that created a cluster, by its `Idempotency-Key`. */
interface StoredRequest {
  readonly uid: string
  /** `Sealed.mark` of its body. */
  readonly mark: Uint8Array
}

/** Requests that created a cluster, so that repeating one creates no second cluster. */
interface RequestStore {
  find(key: string, now: number): StoredRequest | undefined
  add(key: string, request: StoredRequest, now: number): void
}

const keptMs = 86_400_000
// Only accepted requests are kept, and there is one cluster; this is far more than a host has in a day.
const mostKept = 1_000

export function createRequestStore({ sql }: Database): RequestStore {
  return {
    find(key, now) {
      const found = sql
        .prepare('SELECT uid, mark FROM cluster_request WHERE key = ? AND at > ?')
        .get(key, now - keptMs)
      return found as StoredRequest | undefined
    },
    add(key, { uid, mark }, now) {
      sql.prepare('DELETE FROM cluster_request WHERE at <= ?').run(now - keptMs)
      sql
        .prepare(
          `DELETE FROM cluster_request WHERE key NOT IN (
            SELECT key FROM cluster_request ORDER BY at DESC LIMIT ?)`,
        )
        .run(mostKept - 1)
      sql
        .prepare('INSERT OR REPLACE INTO cluster_request (key, mark, uid, at) VALUES (?, ?, ?, ?)')
        .run(key, mark, uid, now)
    },
  }
}

interface CreationOptions {
  readonly store: ClusterStore
  readonly requests: RequestStore
  readonly sealed: Sealed
  /** One write at a time, also of later changes: of two requests at the same time the second sees the cluster of the first. */
  readonly inTurn: Lock
  readonly examine: Examine
  readonly accept: Accept
  /** @throws AppError Busy while the host does something that a change of the cluster has to wait for */
  readonly refuseBusy: () => void
  readonly parts: PlanParts
  readonly facts: () => HostFacts
  readonly placeEndpoint: ClusterHost['placeEndpoint']
  readonly events: Pick<EventLog, 'add'>
  /** Writes the stored copy beside the files of the cluster, from where it is adopted if the database is lost. */
  readonly writeCopy: (cluster: NewCluster, plain: ClusterConfiguration) => Promise<void>
  /** Removes the files of a cluster that was not accepted. */
  readonly removeFiles: (uid: string) => Promise<void>
  /** Removes the programs that were laid out for the checks; called where there is no cluster after them. */
  readonly removePrograms: () => Promise<void>
  /** Called when a cluster was accepted. */
  readonly onAccepted: () => void
  readonly clock: Clock
}

export interface Creation {
  /**
   * Accepts a cluster; the loop makes it.
   * @param key `Idempotency-Key`
   * @param by name of the caller's account
   * @param uid of the cluster, where the platform has made it
   * @param platformNumber the number of the desired state there
   * @throws AppError ClusterExists, Busy, PreflightFailed, NeedsLinkedHosts, IdempotencyKeyReused, BadRequest, InsufficientStorage
   */
  create(posted: ClusterConfiguration, creator: Creator, signal: AbortSignal): Promise<Created>
  /** Makes all checks and the plan, and changes nothing. @throws AppError as `create`, but not PreflightFailed */
  tryOut(posted: ClusterConfiguration, signal: AbortSignal): Promise<ClusterDryRun>
}

/** Requester of a cluster. */
interface Creator {
  readonly by: string
  readonly key?: string | undefined
  readonly uid?: string
  readonly platformNumber?: number
}

interface Created extends ClusterCreated {
  readonly name: string
  /** The request was answered before; nothing was created now. */
  readonly isRepeated: boolean
}

export function createCreation(options: CreationOptions): Creation {
  const { store, requests, sealed, inTurn, events, clock } = options

  function refuseSecond({ uid, name, createdAt, deleteRequestedAt }: ClusterRecord): never {
    const message =
      deleteRequestedAt === null
        ? `this host has the cluster ${name}, created at ${formatTime(createdAt)}; delete it first, or change it: GET /v1/edge-mgmt/cluster`
        : `the cluster ${name} is being deleted since ${formatTime(deleteRequestedAt)}; try again when GET /v1/edge-mgmt/cluster answers 404`
    throw new AppError(clusterErrors.ClusterExists, message, { details: { uid } })
  }

  /** The answer to a request that was answered before. */
  function repeated(key: string | undefined, mark: Uint8Array, name: string): Created | undefined {
    const isEqual = (other: Uint8Array) => Buffer.from(mark).equals(other)
    const before = key === undefined ? undefined : requests.find(key, clock.now())
    if (before) {
      if (isEqual(before.mark)) return { uid: before.uid, name, isRepeated: true }
      throw new AppError(
        clusterErrors.IdempotencyKeyReused,
        'this Idempotency-Key was sent with another body; use a new key',
        { details: { uid: before.uid } },
      )
    }
    const current = store.current()
    if (!current) return undefined
    if (current.deleteRequestedAt !== null || !isEqual(current.mark)) refuseSecond(current)
    if (key !== undefined) requests.add(key, { uid: current.uid, mark }, clock.now())
    return { uid: current.uid, name, isRepeated: true }
  }

  /** Prepares a cluster and makes all checks. @param use the staged files are removed after it */
  async function examine<T>(
    posted: ClusterConfiguration,
    signal: AbortSignal,
    use: (examined: Examined) => Promise<T>,
    uid = uuidAt(clock.now()),
  ): Promise<T> {
    const read = readConfiguration(posted, options.facts())
    const { archiveUploadPath, variables, name, endpoint, settings } = read
    const place = await options.placeEndpoint(endpoint)
    const node = {
      ...read.node,
      // With an address that is refused, the other checks would only repeat that.
      endpoint: place.kind === 'refused' ? read.node.address : endpoint || read.node.address,
      ...(place.kind === 'virtual' ? { virtualAddress: place.virtualAddress } : {}),
    }
    const posts = [...read.problems, ...(place.kind === 'refused' ? [place.problem] : [])]
    try {
      const request = { archiveUploadPath, variables, uid, name, generation: 1, node, settings }
      return await options.examine({ request, problems: posts }, signal, use)
    } finally {
      if (!store.current()) await options.removePrograms()
    }
  }

  async function accept(
    { prepared, report }: Examined,
    posted: ClusterConfiguration,
    { key, by, platformNumber }: Creator,
  ): Promise<void> {
    const { definition } = prepared
    const { uid, name } = prepared.desired
    const clusterOf = (revision: NewRevision): NewCluster => ({ uid, name, ...revision })
    await options.accept({
      prepared,
      report,
      plain: posted,
      by,
      platformNumber,
      origin: 'create',
      outcome: 'applying',
      scheduleAt: null,
      needed: [],
      writeFiles: (revision) => options.writeCopy(clusterOf(revision), posted),
      writeRows(revision) {
        const { mark, at } = revision
        store.add(clusterOf(revision))
        if (key !== undefined) requests.add(key, { uid, mark }, at)
        const add = (reason: 'Accepted' | 'PreflightPassed' | 'PreflightWarning', message: string) =>
          events.add({ clusterUid: uid, reason, message })
        add('Accepted', `the cluster ${name} of ${definition.name} ${definition.version} is accepted`)
        add('PreflightPassed', 'the pre-flight checks found no error')
        for (const { message } of report.problems) add('PreflightWarning', message)
      },
      removeFiles: () => options.removeFiles(uid),
      notDone: 'the cluster was not created',
    })
  }

  return {
    create: (posted, creator, signal) =>
      inTurn(async () => {
        const mark = sealed.mark(canonicalText(posted))
        const before = repeated(creator.key, mark, posted.metadata?.name ?? '')
        if (before) return before
        options.refuseBusy()
        const use = async (examined: Examined) => {
          const { prepared, report } = examined
          if (!report.isPossible)
            throw new AppError(
              clusterErrors.PreflightFailed,
              summaryOf('the cluster cannot be created', report.problems),
              {
                details: { problems: report.problems },
              },
            )
          signal.throwIfAborted()
          await accept(examined, posted, creator)
          options.onAccepted()
          const { uid, name } = prepared.desired
          return { uid, name, isRepeated: false, problems: [...report.problems] }
        }
        return examine(posted, signal, use, creator.uid)
      }),
    tryOut: (posted, signal) =>
      inTurn(async () => {
        const current = store.current()
        if (current) refuseSecond(current)
        return examine(posted, signal, async ({ prepared: { desired }, report, hide }) => {
          const { isPossible, problems, needs } = report
          const stages = isPossible
            ? plan(options.parts, {
                desired,
                isDeleting: false,
                hasRun: false,
                isUpdate: false,
                isRenewalAskedFor: false,
                observed: {
                  ...emptyHost,
                  isAddressHeld: desired.node.virtualAddress === undefined,
                  settings: settingsOf(desired.settings, problems),
                },
              })
            : []
          return {
            isPossible,
            problems: [...problems],
            plan: plannedSteps(stages, hide),
            needs: needs.map((need) => ({ ...need, name: hide(need.name) })),
          }
        })
      }),
  }
}

/** The settings of a host that has none of a cluster yet. */
function settingsOf(desired: DesiredSettings, problems: readonly PreflightProblem[]): SettingsObserved {
  const of = (name: keyof DesiredSettings): SettingObserved => {
    const problem = problems.find(
      ({ code, path = '' }) => code === 'SettingNotApplied' && path.endsWith(name),
    )
    const isDue = desired[name].length > 0 && problem === undefined
    return { ...noSetting, isApplied: desired[name].length === 0, isDue, problem: problem?.message ?? '' }
  }
  return { ntpServers: of('ntpServers'), sshKeys: of('sshKeys') }
}
