import { createHideOf } from '../../definition/slots/secrets.ts'
import { isDeleting, type ClusterStore, type ClusterRecord } from '../cluster-store.ts'
import { stepOf } from './details.ts'
import type { PackInfo, ClusterCurrentApplications } from '../packs/schemas.ts'
import type { ClusterDetails, ClusterConfiguration } from '../schemas.ts'
import type { ClusterStatus } from '../loop/status.ts'
import type { StepRecord } from '../loop/step-store.ts'
import type { SystemEntry } from '../../audit/own-entries.ts'
import type { Definitions, PlatformDelivery } from '../../definition/definitions.ts'
import { describeChange } from '../../base/described-change.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Logger } from '../../system/log.ts'
import type { Change } from '../desired/change.ts'
import type { Creation } from '../desired/creation.ts'
import type { PreflightCodeName, PreflightProblem } from '../desired/preflight-codes.ts'
import { comparedConfiguration, shownRevision } from '../desired/revision-document.ts'
import type { Outcome } from '../desired/schemas.ts'
import type { RevisionStore } from '../desired/revisions.ts'

/** Report of the cluster to the platform; sensitive values are masked. */
export interface PlatformReport {
  readonly uid: string
  readonly state: ClusterDetails['status']['clusterState']
  readonly revision: number
  /** Current work or wait, or the cause of the failure; may be empty. */
  readonly message: string
  readonly steps: ClusterDetails['status']['steps']
  readonly conditions: ClusterDetails['status']['clusterConditions']
  readonly packs: readonly (Pick<PackInfo, 'name' | 'version' | 'type' | 'startTime' | 'endTime'> & {
    readonly profileUid: string
    readonly condition: {
      readonly type: string
      readonly status: string
      readonly reason: string
      readonly message: string
    }
  })[]
  /** Undefined while there is none. */
  readonly kubeconfig: string | undefined
}

interface PlatformReportOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly status: () => ClusterStatus | undefined
  readonly steps: () => readonly StepRecord[]
  readonly conditions: () => ClusterDetails['status']['clusterConditions']
  /** Without details that need the API of Kubernetes. */
  readonly applications: () => Promise<ClusterCurrentApplications>
  /** @throws Error while there is none */
  readonly kubeconfig: () => Promise<string>
}

/** Reads the report; undefined without a cluster. It asks nothing of the API of Kubernetes. */
export function createPlatformReport(
  options: PlatformReportOptions,
): () => Promise<PlatformReport | undefined> {
  return async () => {
    const record = options.store.current()
    if (!record) return undefined
    const hide = createHideOf(record.sensitive)
    const { state, reason } = options.status() ?? record.status
    const [{ clusterProfileTemplates: profiles }, kubeconfig] = await Promise.all([
      options.applications(),
      isDeleting(record) ? undefined : options.kubeconfig().catch(() => undefined),
    ])
    return {
      uid: record.uid,
      state,
      revision: record.generation,
      message: hide(reason),
      kubeconfig,
      steps: options.steps().map((each) => stepOf(each, hide)),
      conditions: options.conditions(),
      packs: profiles.flatMap(({ uid: profileUid, packs }) =>
        packs.map(({ name, version, type, startTime, endTime, status, conditions }) => {
          const available = conditions.find((each) => each.type === 'Available')
          return {
            profileUid,
            name,
            version,
            type,
            ...(startTime === undefined ? {} : { startTime }),
            ...(endTime === undefined ? {} : { endTime }),
            condition: {
              type: 'Available',
              status: available?.status ?? 'False',
              reason: status,
              message: available?.message ?? '',
            },
          }
        }),
      ),
    }
  }
}

/** Order of the platform for the cluster of this host. */
export type PlatformOrder = {
  readonly uid: string
  readonly name: string
  /** Rises with each change there. */
  readonly number: number
} & (
  | { readonly isDeleted: true }
  | {
      readonly isDeleted: false
      /** A `ClusterConfiguration` without `archiveUploadPath`, as it came. */
      readonly configuration: unknown
      readonly definition: Omit<PlatformDelivery, 'content'> & {
        /** The archive; read only where this host does not have it yet. */
        readonly open: () => AsyncIterable<Buffer>
      }
    }
)

/** Outcome of an order. */
type OrderOutcome =
  | { readonly kind: 'applied'; readonly revision: number }
  | { readonly kind: 'deleting' | 'deleted' }
  /** Nothing was touched; messages are masked. `contentMissing`: nothing but content is missing. */
  | { readonly kind: 'refused' | 'contentMissing' | 'clusterExists'; readonly message: string }
  /** Nothing was touched, and it may be possible later. */
  | { readonly kind: 'later'; readonly message: string }

/** The cluster of this host, as the link to the platform needs it. */
interface ClusterForPlatform {
  readonly uid: string
  readonly name: string
  readonly isDeleting: boolean
  /** The newest requested revision; not one with which the host went back by itself. */
  readonly newest: {
    readonly revision: number
    readonly platformNumber: number | null
    readonly outcome: Outcome
    /** Why it is held or has failed; masked. */
    readonly reason: string
  }
  /** The applied revision. */
  readonly active: { readonly revision: number; readonly outcome: Outcome }
}

interface FromPlatformOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly revisions: RevisionStore
  readonly creation: Pick<Creation, 'create'>
  readonly change: Pick<Change, 'write'>
  /** Asks for the deletion of the cluster; again while it is under way: nothing. */
  readonly remove: () => void
  readonly definitions: Pick<Definitions, 'takeFromPlatform' | 'dropFromPlatform'>
  /** Problem of the form of a configuration; undefined for none. */
  readonly problemOf: (configuration: unknown) => string | undefined
  readonly record: (entry: SystemEntry) => void
  readonly log: Logger
}

/** Applies orders of the platform to the cluster of this host, in the same way as an administrator of it. */
export interface FromPlatform {
  /** May be called again with the same order: an accepted order is not accepted twice. */
  apply(order: PlatformOrder, signal: AbortSignal): Promise<OrderOutcome>
  current(): ClusterForPlatform | undefined
}

const by = 'platform'

// Problems that an upload of content repairs.
const contentCodes: ReadonlySet<PreflightCodeName> = new Set([
  ...(['ImageMissing', 'ImageDamaged', 'ImageForeign'] as const),
  ...(['ChartMissing', 'HelmMissing', 'ProgramMissing', 'ProgramDamaged'] as const),
])
// These say nothing about the order.
const passingCodes: readonly string[] = [
  'Busy',
  'NotReady',
  'StorageFull',
  'InsufficientStorage',
  'ClusterDeleting',
]

export function createFromPlatform(options: FromPlatformOptions): FromPlatform {
  const { store, revisions, creation, change, definitions, problemOf, log } = options

  function tell(action: SystemEntry['action'], { uid, name, number }: PlatformOrder, what: string): void {
    options.record({
      action,
      kind: 'cluster',
      resourceName: name,
      resourceUid: uid,
      message: `${what}, as the platform wants it (number ${number})`,
    })
  }

  async function remove(order: PlatformOrder): Promise<OrderOutcome> {
    const record = store.current()
    if (record?.uid !== order.uid) {
      await definitions.dropFromPlatform()
      return { kind: 'deleted' }
    }
    if (!isDeleting(record)) {
      options.remove()
      tell('delete', order, 'Delete the cluster')
    }
    return { kind: 'deleting' }
  }

  /** The handle of the definition: of the cluster's own copy, where it is the same. */
  async function handleOf(
    record: ClusterRecord | undefined,
    { definition: { open, ...definition } }: PlatformOrder & { readonly isDeleted: false },
    signal: AbortSignal,
  ): Promise<string> {
    const shown = record && shownRevision(revisions, record)
    const present = shown?.posted.spec?.archiveUploadPath ?? ''
    if (present !== '' && shown?.summary.definition.sha256 === definition.sha256) return present
    return definitions.takeFromPlatform({ ...definition, content: open() }, signal)
  }

  async function make(
    order: PlatformOrder & { readonly isDeleted: false },
    signal: AbortSignal,
  ): Promise<OrderOutcome> {
    const { uid, name, number: platformNumber } = order
    const record = store.current()
    if (record && record.uid !== uid)
      return {
        kind: 'clusterExists',
        message: `this host has the cluster ${record.name}, which is not the one that the platform wants; delete it on this host first`,
      }
    const done = record && revisions.list().find((each) => each.platformNumber === platformNumber)
    if (done) return { kind: 'applied', revision: done.generation }
    const problem = problemOf(order.configuration)
    if (problem !== undefined) return { kind: 'refused', message: `the configuration: ${problem}` }
    const given = order.configuration as ClusterConfiguration
    if (given.metadata?.name !== name)
      return { kind: 'refused', message: 'the configuration has another name than the cluster' }
    const archiveUploadPath = await handleOf(record, order, signal)
    const configuration = { ...given, spec: { ...given.spec, archiveUploadPath } }
    if (!record) {
      await creation.create(configuration, { by, uid, platformNumber }, signal)
      tell('create', order, 'Create the cluster')
      return { kind: 'applied', revision: revisions.newest()?.generation ?? 1 }
    }
    const shownNow = () => shownRevision(revisions, store.current() ?? record)
    const compared = () => comparedConfiguration(record, shownNow())
    let before = compared()
    // Another change may be made before this one has its turn.
    const onTurn = () => {
      before = compared()
    }
    const { revision } = await change.write(
      { by, platformNumber, ifMatch: undefined, onTurn, edit: async () => configuration },
      signal,
    )
    if (revision === undefined) return { kind: 'applied', revision: shownNow().generation }
    const what = describeChange(before, compared()) || 'nothing differs'
    tell('update', order, `Change the cluster, revision ${revision}: ${what}`)
    return { kind: 'applied', revision }
  }

  return {
    async apply(order, signal) {
      try {
        return await (order.isDeleted ? remove(order) : make(order, signal))
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof AppError)) {
          log.error({ err: error, number: order.number }, 'the order of the platform could not be applied')
          return { kind: 'later', message: `it could not be applied: ${(error as Error).message}` }
        }
        return outcomeOf(error)
      }
    },
    current() {
      const record = store.current()
      // A cluster of a version without revisions has one since then.
      const newest = record && revisions.newestDesired()
      const active = record && revisions.find(record.generation)
      if (!newest || !active) return undefined
      const { generation, platformNumber, outcome, reason } = newest
      return {
        uid: record.uid,
        name: record.name,
        isDeleting: isDeleting(record),
        newest: {
          revision: generation,
          platformNumber,
          outcome,
          reason: createHideOf(newest.sensitive)(reason),
        },
        active: { revision: active.generation, outcome: active.outcome },
      }
    },
  }
}

function outcomeOf(error: AppError): OrderOutcome {
  const { message, details } = error
  if (passingCodes.includes(error.code)) return { kind: 'later', message }
  const { problems = [] } = {
    ...(details as { readonly problems?: readonly PreflightProblem[] } | undefined),
  }
  const errors = problems.filter(({ severity }) => severity === 'error')
  const said = errors.length === 0 ? message : errors.map((each) => each.message).join('; ')
  const isContent = errors.length > 0 && errors.every(({ code }) => contentCodes.has(code))
  return { kind: isContent ? 'contentMissing' : 'refused', message: said }
}
