import type { Ground } from '../../root/room.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { deliveryFrame } from '../../definition/examination/protocol.ts'
import type { Compared } from '../../base/described-change.ts'
import { formatTime } from '../../base/time.ts'
import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { requireTag } from '../../errors/refused-field.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Seal } from '../../secrets/seal.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { ExaminationCaller } from '../examinations.ts'
import type { HostRecord } from '../hosts/store.ts'
import { openKeptFolders, type KeptFolders } from '../kept-folders.ts'
import type { PlatformSettings } from '../config.ts'
import type { HostParts } from '../hosts/hosts.ts'
import { sealedColumns, sealOf } from '../system/secret.ts'
import type { PackParts } from '../packs/packs.ts'
import { createClusterReports, type ClusterReports } from './reports.ts'
import type { Profiles } from '../profiles/profiles.ts'
import type { EdgeNativeCloudConfig } from '../clouds/schemas.ts'
import type {
  ClusterProfilesEntity,
  ClusterValidatorResponse,
  ClusterVariables,
  ClusterVariablesUpdate,
  ClusterStatus,
  EdgeNativeClusterConfig,
  EdgeNativeClusterEntity,
  SpectroCluster,
} from './schemas.ts'
import { requireUnchanged } from '../requests/changes.ts'
import {
  toCloudConfig,
  clusterList,
  comparedCluster,
  silenceCondition,
  toCluster,
  type ClusterContext,
} from './list.ts'
import {
  headColumns,
  toClusterHead,
  type ClusterHead,
  type ClusterRecord,
  type ClusterStore,
} from './store.ts'
import {
  changedMeanwhile,
  whileChanging,
  type ExamineRequest,
  type ExaminedRequest,
  type ClusterRequest,
  createExamineRequest,
} from './examine-request.ts'
import { readRunning } from './check-configuration.ts'
import {
  correctedEndpoint,
  fixedProblems,
  hasStartedDeletion,
  isDeletionRefused,
  numberAfter,
  requireSilent,
  toValidation,
  createClusterRequests,
} from './requests.ts'
import {
  carriedValues,
  changedValues,
  exposedProblems,
  givenIn,
  givenInUpdate,
  hasSameValues,
  markedValues,
  shownValues,
  toVariables,
  type Given,
} from './values.ts'
import { createDownloads, type Downloads, type DesiredIndex } from './downloads.ts'

export interface ClustersOptions {
  readonly store: ClusterStore
  readonly index: DesiredIndex
  readonly folders: KeptFolders
  readonly examine: ExamineRequest
  readonly profiles: Pick<Profiles, 'findUsable'>
  readonly findHost: (uid: string) => HostRecord | undefined
  readonly silenceOf: HostParts['silenceOf']
  readonly findHostByOwnId: (hostUid: string) => HostRecord | undefined
  /** When the cluster was last seen, since the start. */
  readonly lastSeenAt: (uid: string) => number | undefined
  readonly tenantUid: string
  /** Seals given values. */
  readonly valueSeal: Seal
  /** Seals descriptions for hosts. */
  readonly headSeal: Seal
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly clock: Pick<Clock, 'now'>
}

/** The cluster of a change. */
export interface Target {
  readonly uid: string
  readonly projectUid: string
  /** `If-Match`. */
  readonly ifMatch: string | undefined
}

/** The clusters of the platform, each on one host. Each change gives one the next number, which its host sees at its next heartbeat. */
export interface Clusters {
  /** All problems of a cluster; nothing is changed. @throws AppError ClusterChanged where its profiles change all the time */
  validate(
    entity: EdgeNativeClusterEntity,
    projectUid: string,
    caller: ExaminationCaller,
  ): Promise<ClusterValidatorResponse>
  /** @throws AppError ClusterInvalid, ClusterExists, HostInUse, ClusterChanged */
  create(entity: EdgeNativeClusterEntity, projectUid: string, caller: ExaminationCaller): Promise<ClusterHead>
  readonly list: SqlList<SpectroCluster>
  inScope(projectUid: string): SqlCondition
  /** @throws AppError NotFound for a cluster of another scope too */
  get(uid: string, projectUid: string): ClusterRecord
  show(cluster: ClusterRecord): SpectroCluster
  /** The state alone, and whether the host answers. */
  showStatus(cluster: ClusterRecord): ClusterStatus
  showConfig(cluster: ClusterRecord): EdgeNativeCloudConfig
  variablesOf(cluster: ClusterRecord): ClusterVariables
  /** A cluster as the audit trail compares it. @throws AppError NotFound */
  compared(uid: string, projectUid: string): Compared
  /**
   * Replaces the profiles. Values that were given before stay.
   * @throws AppError NotFound, PreconditionFailed, ClusterDeleting, ClusterInvalid, ClusterChanged
   */
  setProfiles(target: Target, entity: ClusterProfilesEntity, caller: ExaminationCaller): Promise<ClusterHead>
  /** Where no value changes, the number stays. @throws AppError as `setProfiles` */
  setVariables(
    target: Target,
    update: ClusterVariablesUpdate,
    caller: ExaminationCaller,
  ): Promise<ClusterHead>
  /** Replaces NTP servers and SSH keys, and an address of the control plane that the host has refused; other named fields have to be unchanged. @throws AppError as `setProfiles` */
  setSettings(
    target: Target,
    config: EdgeNativeClusterConfig,
    caller: ExaminationCaller,
  ): Promise<ClusterHead>
  /**
   * The same again with a number higher than the host's.
   * @param isCancelling takes back a deletion that the host has not started; without it, a deletion stands
   * @throws AppError as `setProfiles`
   */
  applyAgain(target: Target, isCancelling: boolean, caller: ExaminationCaller): Promise<ClusterHead>
  /**
   * Has the host delete the cluster; once more only where the host has not taken the deletion. Forced, the platform only forgets it.
   * @throws AppError NotFound, PreconditionFailed, HostNotSilent
   */
  remove(target: Target, isForced: boolean): Promise<ClusterHead>
  /** Forgets a cluster that its host has deleted. */
  forget(cluster: ClusterHead): Promise<void>
  /** Names of resources that block the deletion of a project. */
  usesOfProject(projectUid: string): readonly string[]
}

/** The entity tag of a cluster in the API. */
export const etagOf = ({ number }: Pick<ClusterHead, 'number'>): string => `"${number}"`

export function createClusters(options: ClustersOptions): Clusters {
  const {
    store,
    index,
    folders,
    examine,
    profiles,
    findHost,
    tenantUid,
    valueSeal,
    headSeal,
    database,
    clock,
  } = options
  const { requestOf, findProfiles } = createClusterRequests(options)

  function get(uid: string, projectUid: string): ClusterRecord {
    const cluster = store.find(uid)
    if (cluster?.projectUid !== projectUid)
      throw new AppError(generalErrors.NotFound, 'there is no cluster with this uid in this scope')
    return cluster
  }

  function getFor({ uid, projectUid, ifMatch }: Target): ClusterRecord {
    const cluster = get(uid, projectUid)
    const { number, modifiedAt } = cluster
    const advice = `the cluster was changed since it was read, last at ${formatTime(modifiedAt)}, as number ${number}; GET /v1/audits says who did it. Read the cluster again, and change that`
    requireTag(ifMatch, etagOf(cluster), advice)
    return cluster
  }

  function requireKept({ deleteRequestedAt, name, number }: ClusterRecord): void {
    if (deleteRequestedAt !== undefined)
      throw new AppError(
        platformErrors.ClusterDeleting,
        `the cluster ${name} is to be deleted by its host, as number ${number}, asked for at ${formatTime(deleteRequestedAt)}; GET /v1/audits says by whom`,
      )
  }

  function requireNotStarted(cluster: ClusterRecord): void {
    if (hasStartedDeletion(cluster))
      throw new AppError(
        platformErrors.ClusterDeleting,
        `the host of ${cluster.name} has begun to delete it, so this cannot be taken back`,
      )
  }

  const contextOf = ({ uid, hostUid }: ClusterHead): ClusterContext => {
    const host = findHost(hostUid)
    return {
      hostName: host?.name ?? '',
      silence: options.silenceOf(host),
      lastSeenAt: options.lastSeenAt(uid),
    }
  }

  function givenOf({ given, name }: ClusterRecord): Given {
    const opened = valueSeal.open(given)
    if (opened !== undefined) return JSON.parse(opened) as Given
    throw new AppError(
      platformErrors.SecretReplaced,
      `the sensitive values of the cluster ${name} cannot be read any more`,
    )
  }

  /** Refuses a request with errors. @param what for example `the cluster cannot be created` */
  function requirePossible(what: string, { isPossible, problems }: ExaminedRequest): void {
    if (isPossible) return
    const errors = problems.filter(({ severity }) => severity === 'error')
    const more = errors.length > 1 ? `; ${errors.length - 1} more in details.problems` : ''
    throw new AppError(platformErrors.ClusterInvalid, `${what}: ${errors[0]?.message ?? ''}${more}`, {
      details: { count: errors.length, problems: [...problems] },
    })
  }

  /**
   * Examines and builds a request in a new folder, and writes it.
   * @param writeRow called in a transaction when all is in its place
   */
  async function make(
    request: ClusterRequest,
    what: string,
    caller: ExaminationCaller,
    writeRow: (made: Pick<ClusterRecord, MadeFields>) => void,
  ): Promise<void> {
    const staged = await folders.stage()
    try {
      const examined = await examine(request, { folder: staged.folder, isBuilt: true }, caller)
      requirePossible(what, examined)
      const { built, templates } = examined
      if (!built) throw new Error('a cluster without a problem was not built')
      const { configuration, given, number } = request
      const made = {
        number,
        configuration,
        templates,
        filesUid: staged.uid,
        digest: built.digest,
        definitionBytes: built.sizeBytes,
        shownValues: shownValues(given, request.profiles),
        given: valueSeal.seal(JSON.stringify(markedValues(given, request.profiles))),
        head: headSeal.seal(built.head),
        modifiedAt: clock.now(),
      }
      await folders.keep(staged, () => {
        database.transaction(() => {
          caller.signal.throwIfAborted()
          examined.requireSame()
          writeRow(made)
        })
      })
    } catch (error) {
      await folders.removeStaged(staged)
      throw error
    }
    if (request.host) index.refresh(request.host.uid)
  }

  /** Changes the desired state of a cluster. */
  async function change(
    before: ClusterRecord,
    changes: Partial<Pick<ClusterRequest, 'number' | 'configuration' | 'profiles' | 'given' | 'problems'>>,
    caller: ExaminationCaller,
    kept: Pick<ClusterRecord, 'state' | 'deleteRequestedAt'> = before,
  ): Promise<ClusterHead> {
    const { uid, projectUid, name, hostUid, number, configuration, templates, filesUid } = before
    const present = templates.flatMap((template) => profiles.findUsable(template.uid, projectUid) ?? [])
    const { profiles: used = present, given = givenOf(before), problems = [] } = changes
    const request: ClusterRequest = {
      uid,
      projectUid,
      name,
      configuration,
      host: findHost(hostUid),
      number: number + 1,
      ...changes,
      running: await readRunning(before, folders),
      profiles: used,
      given,
      problems: [...problems, ...exposedProblems(given, used)],
    }
    await make(request, 'the cluster cannot be changed', caller, (made) => {
      const now = store.find(uid)
      // Another change was faster and has taken the number.
      if (now?.number !== before.number || now.deleteRequestedAt !== before.deleteRequestedAt)
        throw changedMeanwhile()
      // The host may meanwhile have started the deletion that is taken back.
      if (kept !== before) requireNotStarted(now)
      const { state, deleteRequestedAt } = kept === before ? now : kept
      store.replace({ ...now, ...made, state, deleteRequestedAt })
    })
    if (filesUid !== '') await folders.remove(filesUid)
    return get(uid, projectUid)
  }

  /** A cluster that its host shall delete. */
  function deleted(cluster: ClusterRecord, number: number): ClusterRecord {
    const { uid, name } = cluster
    const head = JSON.stringify({ number, cluster: { uid, name }, tenantUid, isDeleted: true })
    const { before } = deliveryFrame(Buffer.from(head), undefined)
    return {
      ...cluster,
      number,
      state: 'Deleting',
      filesUid: '',
      definitionBytes: 0,
      head: headSeal.seal(head),
      digest: createHash('sha256').update(before).digest('hex'),
      modifiedAt: clock.now(),
      deleteRequestedAt: cluster.deleteRequestedAt ?? clock.now(),
    }
  }

  async function putDeleted(cluster: ClusterRecord, number: number): Promise<ClusterHead> {
    const next = deleted(cluster, number)
    store.replace(next)
    index.refresh(cluster.hostUid)
    if (cluster.filesUid !== '') await folders.remove(cluster.filesUid)
    return next
  }

  async function forget(cluster: ClusterHead): Promise<void> {
    store.remove(cluster.uid)
    index.refresh(cluster.hostUid)
    if (cluster.filesUid !== '') await folders.remove(cluster.filesUid)
  }

  return {
    get,
    forget,
    async validate(entity, projectUid, caller) {
      requireUnchanged({ metadata: entity.metadata })
      return whileChanging(async () => {
        const request = requestOf(entity, projectUid, uuidAt(clock.now()))
        const staged = await folders.stage()
        try {
          return toValidation(
            request,
            await examine(request, { folder: staged.folder, isBuilt: false }, caller),
          )
        } finally {
          await folders.removeStaged(staged)
        }
      })
    },
    async create(entity, projectUid, caller) {
      requireUnchanged({ metadata: entity.metadata })
      const { metadata } = entity
      const at = clock.now()
      const request = requestOf(entity, projectUid, uuidAt(at))
      await make(request, 'the cluster cannot be created', caller, (made) => {
        const { uid, name, host } = request
        if (!host || findHost(host.uid)?.projectUid !== projectUid) throw changedMeanwhile()
        if (store.hasName(projectUid, name))
          throw new AppError(platformErrors.ClusterExists, `there is a cluster named ${name} in this scope`)
        const present = store.findOn(host.uid)
        if (present)
          throw new AppError(platformErrors.HostInUse, `${host.name} has the cluster ${present.name}`)
        store.add({
          ...made,
          uid,
          projectUid,
          name,
          hostUid: host.uid,
          state: 'Pending',
          createdAt: at,
          labels: metadata.labels ?? {},
          annotations: metadata.annotations ?? {},
          deleteRequestedAt: undefined,
          heartbeat: undefined,
          conditions: [],
          packs: [],
          steps: [],
        })
      })
      return get(request.uid, projectUid)
    },
    list: createSqlList({
      resource: clusterList,
      table: 'cluster',
      columns: headColumns,
      count: store.counts.all,
      sql: database.sql,
      read: options.read,
      toItem(row) {
        const cluster = toClusterHead(row)
        return toCluster(cluster, contextOf(cluster))
      },
    }),
    inScope: store.counts.condition,
    show: (cluster) => toCluster(cluster, contextOf(cluster)),
    showStatus(cluster) {
      const { status } = toCluster(cluster, contextOf(cluster))
      const { state, lastHeartbeatTimestamp } = status
      return {
        status: {
          state,
          conditions: [silenceCondition(contextOf(cluster))],
          ...(lastHeartbeatTimestamp === undefined ? {} : { lastHeartbeatTimestamp }),
        },
      }
    },
    showConfig: (cluster) => toCloudConfig(cluster, findHost(cluster.hostUid)),
    variablesOf: ({ templates, projectUid, shownValues: shown }) =>
      toVariables(
        shown,
        templates.flatMap(({ uid }) => profiles.findUsable(uid, projectUid) ?? []),
      ),
    compared(uid, projectUid) {
      const cluster = get(uid, projectUid)
      const opened = valueSeal.open(cluster.given)
      const given = opened === undefined ? undefined : (JSON.parse(opened) as Given)
      return comparedCluster(cluster, findHost(cluster.hostUid)?.name ?? '', given ?? cluster.shownValues)
    },
    async setProfiles(target, { profiles: entities }, caller) {
      const before = getFor(target)
      requireKept(before)
      const replacements = entities.map(({ uid = '', replaceWithProfile = '', ...rest }) => ({
        ...rest,
        uid: replaceWithProfile || uid,
      }))
      const { found, problems } = findProfiles(replacements, target.projectUid)
      const replacedBy = new Map(
        entities.map(({ uid = '', replaceWithProfile = '' }) => [uid, replaceWithProfile || uid]),
      )
      const carried = carriedValues(givenOf(before), before.templates, found, replacedBy)
      const given = changedValues(carried, givenIn(replacements), found)
      return change(before, { profiles: found, problems, given }, caller)
    },
    async setVariables(target, update, caller) {
      const before = getFor(target)
      requireKept(before)
      const used = before.templates.flatMap(({ uid }) => profiles.findUsable(uid, target.projectUid) ?? [])
      const stored = givenOf(before)
      const given = changedValues(stored, givenInUpdate(update), used)
      // With another number the host would apply the same again.
      if (hasSameValues(stored, markedValues(given, used))) return before
      return change(before, { given }, caller)
    },
    async setSettings(target, { ntpServers = [], sshKeys = [], ...rest }, caller) {
      const before = getFor(target)
      requireKept(before)
      const { cloudConfig } = before.configuration.spec
      const endpoint = correctedEndpoint(rest, before)
      const present = {
        ...cloudConfig.spec.clusterConfig,
        ...(endpoint ? { controlPlaneEndpoint: endpoint } : {}),
      }
      const problems = fixedProblems(rest, present)
      const clusterConfig = { ...present, ntpServers, sshKeys }
      const spec = { cloudConfig: { spec: { ...cloudConfig.spec, clusterConfig } } }
      return change(before, { configuration: { ...before.configuration, spec }, problems }, caller)
    },
    async applyAgain(target, isCancelling, caller) {
      const before = getFor(target)
      const number = numberAfter(before)
      if (before.deleteRequestedAt === undefined) return change(before, { number }, caller)
      if (!isCancelling) requireKept(before)
      requireNotStarted(before)
      const state = before.heartbeat?.state ?? 'Pending'
      return change(before, { number }, caller, { state, deleteRequestedAt: undefined })
    },
    async remove(target, isForced) {
      const cluster = getFor(target)
      if (isForced) {
        requireSilent(findHost(cluster.hostUid), clock.now())
        await forget(cluster)
        return cluster
      }
      const isNew = cluster.deleteRequestedAt === undefined || isDeletionRefused(cluster)
      return isNew ? putDeleted(cluster, numberAfter(cluster)) : cluster
    },
    usesOfProject: (projectUid) => store.counts.usesOf(projectUid, 'cluster'),
  }
}

type MadeFields =
  | 'number'
  | 'configuration'
  | 'templates'
  | 'filesUid'
  | 'digest'
  | 'definitionBytes'
  | 'shownValues'
  | 'given'
  | 'head'
  | 'modifiedAt'

interface ClusterPartsOptions {
  readonly store: ClusterStore
  readonly index: DesiredIndex
  readonly tenantUid: string
  readonly hosts: Pick<HostParts, 'find' | 'findByOwnId' | 'silenceOf'>
  readonly packs: Pick<PackParts, 'packs' | 'profiles' | 'examinations'>
  /** Whether the disk has space for data that can wait. */
  readonly hasSpace: () => boolean
}

/** Clusters on hosts: their desired state, its download, and the reports of their hosts. */
export interface ClusterParts {
  readonly clusters: Clusters
  readonly downloads: Downloads
  readonly reports: ClusterReports
  readonly index: DesiredIndex
}

/** Creates the parts in the order of their dependencies, and removes what a killed daemon left. */
export async function createClusterParts(
  ground: Ground<{ readonly platform: Pick<PlatformSettings, 'packs'> }>,
  { store, index, tenantUid, hosts, packs, hasSpace }: ClusterPartsOptions,
): Promise<ClusterParts> {
  const { stateDirectory, database, completeUntil, read, secrets, clock, log } = ground
  const settings = ground.config.platform.packs
  const present = store.all()
  const folders = await openKeptFolders({
    completeUntil,
    log,
    folder: join(stateDirectory, 'clusters'),
    named: present.flatMap(({ filesUid }) => (filesUid === '' ? [] : [filesUid])),
    onMissing(filesUid) {
      const { uid = '' } = present.find((each) => each.filesUid === filesUid) ?? {}
      const cluster = store.find(uid)
      if (!cluster) return
      store.replace({ ...cluster, filesUid: '', definitionBytes: 0, digest: '' })
      index.refresh(cluster.hostUid)
      log.error({ name: cluster.name }, 'the definition of a cluster is missing; apply the cluster again')
    },
  })
  const headSeal = sealOf(secrets, sealedColumns.clusterDescriptions)
  const { takeHeartbeat, ...reports } = createClusterReports({
    store,
    hasSpace,
    clock,
    seal: sealOf(secrets, sealedColumns.kubeconfigs),
  })
  const { profiles } = packs
  const clusters = createClusters({
    store,
    index,
    folders,
    profiles,
    tenantUid,
    headSeal,
    database,
    read,
    clock,
    valueSeal: sealOf(secrets, sealedColumns.clusterValues),
    findHost: hosts.find,
    silenceOf: hosts.silenceOf,
    findHostByOwnId: hosts.findByOwnId,
    lastSeenAt: reports.lastSeenAt,
    examine: createExamineRequest({
      profiles,
      packs: packs.packs,
      examinations: packs.examinations,
      settings,
      tenantUid,
    }),
  })
  return {
    clusters,
    index,
    downloads: createDownloads({ store, folders, profiles, seal: headSeal }),
    reports: {
      ...reports,
      async heartbeat(cluster, heartbeat) {
        if (takeHeartbeat(cluster, heartbeat)) await clusters.forget(cluster)
      },
    },
  }
}
