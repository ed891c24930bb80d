import { masked } from '../../base/mask.ts'
import { refusedField, requireTag } from '../../errors/refused-field.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import { canonicalAddress, isAddress } from '../../base/address.ts'
import { isUnset } from '../../base/field-stance.ts'
import { formatTime } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { clusterErrors } from '../codes.ts'
import type { PreflightProblem } from './preflight-codes.ts'
import type { DesiredState, DesiredNode } from './desired-state.ts'
import { isOlder, skewOf } from './version.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Clock } from '../../system/clock.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import { canonicalText } from './configuration.ts'
import { noCluster } from '../api/reading.ts'
import { documentOf, etagOf, scheduleOf, shownRevision } from './revision-document.ts'
import type { Revision, RevisionStore } from './revisions.ts'

/** A configuration as it is stored: without fields of the host itself, and without a start time. */
function storedForm({ metadata = {}, spec = {} }: ClusterConfiguration): ClusterConfiguration {
  const { name, labels, tags } = metadata
  const { archiveUploadPath, profileVariables, cloudConfig } = spec
  return {
    metadata: defined({ name, labels, tags }),
    spec: defined({ archiveUploadPath, profileVariables, cloudConfig }),
  }
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

const defined = <T extends object>(value: T): Defined<T> =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Defined<T>

/** The stored configuration, masked and in plain text; the plain text is undefined where it cannot be read any more. */
export interface Stored {
  readonly posted: ClusterConfiguration
  readonly plain: ClusterConfiguration | undefined
}

/**
 * Puts the stored values in the place of masks, which GET gives for them.
 * @throws AppError BadRequest naming the place of a mask for a value that is not stored
 */
export function unmask(given: ClusterConfiguration, { posted, plain }: Stored): ClusterConfiguration {
  const { spec } = given
  if (!spec?.profileVariables) return given
  const known = posted.spec?.profileVariables ?? []
  const plainOnes = plain?.spec?.profileVariables ?? []
  return {
    ...given,
    spec: {
      ...spec,
      profileVariables: spec.profileVariables.map((each, index) => {
        if (each.value !== masked) return each
        const field = `spec.profileVariables[${index}].value`
        const found = findVariable(known, each)
        if (found === undefined)
          throw refusedField(
            field,
            'is masked, and no value of this variable is stored: give the value itself',
          )
        const value = plainOnes[found]?.value
        if (value === undefined)
          throw refusedField(
            field,
            'is masked, and the stored value cannot be read any more, since the secret of the state folder was replaced: give the value itself',
          )
        return { ...each, value }
      }),
    },
  }
}

/** A variable of a stored configuration, or of a part of one that is unchecked. */
interface Named {
  readonly name?: unknown
  readonly profileUid?: unknown
}
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Place of the variable among the stored ones: with the same profile, otherwise the only one that may be meant. */
export function findVariable(known: readonly Named[], { name, profileUid }: Named): number | undefined {
  const same = known.flatMap((each, index) => (textOf(each.name) === textOf(name) ? [index] : []))
  const uidOf = (index: number) => textOf(known[index]?.profileUid)
  const exact = same.find((index) => uidOf(index) === textOf(profileUid))
  if (exact !== undefined) return exact
  const possible = same.filter((index) => textOf(profileUid) === '' || uidOf(index) === '')
  return possible.length === 1 ? possible[0] : undefined
}

const cloudPath = 'spec.cloudConfig.spec'
const poolPath = `${cloudPath}.machinePoolConfig[0]`

/**
 * Refuses changes of lifelong fields. Empty fields of the node mean: as it is.
 * @param shown the document of GET, with the fields that the host itself sets
 * @throws AppError CannotChange that names the field
 */
function refuseFixed(
  next: ClusterConfiguration & { readonly status?: unknown },
  shown: ClusterConfiguration,
  node: DesiredNode,
): void {
  const { metadata = {} } = next
  const stays = (field: string, given: string | undefined, present: string | undefined) => {
    if ((given ?? '') !== '' && given !== (present ?? ''))
      throw refuse(field, `stays ${JSON.stringify(present)}`)
  }
  if (!isUnset(next.status)) throw refuse('status', 'is what the host says; leave it out')
  stays('metadata.name', metadata.name, shown.metadata?.name)
  stays('metadata.id', metadata.id, shown.metadata?.id)
  const { creationTimestamp: created = '' } = metadata
  if (created !== '' && Date.parse(created) !== Date.parse(shown.metadata?.creationTimestamp ?? ''))
    throw refuse('metadata.creationTimestamp', 'is what the host says; leave it as GET gives it')

  const endpoint = endpointIn(next)
  if (endpoint !== endpointIn(shown) && endpoint !== canonical(node.endpoint))
    throw refuse(
      `${cloudPath}.clusterConfig.controlPlaneEndpoint.host`,
      `stays ${JSON.stringify(endpointIn(shown) || canonical(node.endpoint))}: certificates and clients of the cluster have it`,
    )
  const [pool] = next.spec?.cloudConfig?.spec?.machinePoolConfig ?? []
  const [host] = pool?.hosts ?? []
  stays(`${poolPath}.name`, pool?.name, node.poolName)
  stays(`${poolPath}.hosts[0].hostName`, host?.hostName, node.name)
  const [was] = shown.spec?.cloudConfig?.spec?.machinePoolConfig?.[0]?.hosts ?? []
  for (const field of ['networkInfo', 'nic', 'nicName', 'staticIP'] as const)
    if (!isUnset(host?.[field]) && JSON.stringify(host?.[field]) !== JSON.stringify(was?.[field]))
      throw refuse(`${poolPath}.hosts[0].${field}`, `stays as the cluster was created, at ${node.address}`)
  stays(`${poolPath}.hosts[0].hostAddress`, host?.hostAddress && canonical(host.hostAddress), node.address)
}

const endpointIn = ({ spec }: ClusterConfiguration) =>
  canonical(spec?.cloudConfig?.spec?.clusterConfig?.controlPlaneEndpoint?.host ?? '')

const canonical = (text: string) => (isAddress(text.trim()) ? canonicalAddress(text.trim()) : text.trim())

const refuse = (field: string, reason: string) =>
  new AppError(clusterErrors.CannotChange, `${field} cannot be changed: it ${reason}`, { details: { field } })

/**
 * Parts of another definition, or of other values of its packs, that a cluster cannot take; pure.
 * @param hasCopy whether a copy of the desired version of Kubernetes is kept, and may be restored
 */
export async function judgeFixed(
  next: DesiredState,
  present: DesiredState,
  hasCopy: boolean,
): Promise<readonly PreflightProblem[]> {
  const found: PreflightProblem[] = []
  const add = (
    message: string,
    pack: string,
    path = 'spec.archiveUploadPath',
    code: PreflightProblem['code'] = 'CannotChange',
  ) => found.push({ code, severity: 'error', message, pack, path })
  const { pack } = next.kubernetes
  // A pack that could not be prepared has problems of its own.
  if (pack !== '' && pack !== present.kubernetes.pack)
    add(
      `the cluster is made by the pack ${present.kubernetes.pack}, not by ${pack}; take a definition with it`,
      pack,
    )
  const [version, now] = [next.kubernetes.version, present.kubernetes.version]
  const isRestored = hasCopy && isOlder(version, now)
  const skew = version === '' || isRestored ? undefined : skewOf(now, version)
  if (skew !== undefined) add(skew, pack, undefined, 'VersionSkew')
  const networkPack = ({ packs }: DesiredState) => packs.find(({ layer }) => layer === 'cni')?.name
  const [was, is] = [networkPack(present), networkPack(next)]
  if (was !== undefined && is !== undefined && was !== is)
    add(`the network of the cluster is made by the pack ${was}, not by ${is}; take a definition with it`, is)
  try {
    const { changedFixedSettings, saidOfFixed } = await import('../engine/pack-config.ts')
    for (const setting of changedFixedSettings(present.kubernetes, next.kubernetes))
      add(saidOfFixed(setting, pack), pack, `cluster.config.${setting.path}`)
  } catch {
    // The engine reports a text that cannot be read.
  }
  return found
}

const field = 'spec.scheduleAt'
// RFC 3339, 5.6.
const form = /^\d{4}-\d\d-\d\d[Tt ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

/**
 * Start time of a revision.
 * @param known the time that GET gives for a revision that waits: it may have come meanwhile
 * @returns milliseconds since 1970; null: at once
 * @throws AppError BadRequest where it is no time of the future
 */
function parseSchedule(text: string, now: number, known: number | null): number | null {
  if (text === '') return null
  const at = form.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text.replace(' ', 'T')) : NaN
  const refuse = (message: string) => refusedField(field, message)
  if (Number.isNaN(at)) throw refuse('must be a time as RFC 3339 writes it, for example 2031-05-01T02:00:00Z')
  if (at > now) return at
  if (at === known) return null
  throw refuse(
    `must be in the future; the clock of this host says ${new Date(now).toISOString()}. Leave it out to begin at once`,
  )
}

/** Whether the month has the day: `Date.parse` takes the 30th of February for the 2nd of March. */
function isDay(day: string): boolean {
  const at = Date.parse(day)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day)
}

/** A write of the configuration. */
export interface Write {
  /** Makes the desired configuration from the document of GET. @throws AppError BadRequest */
  readonly edit: (shown: ClusterConfiguration, revision: Revision) => Promise<ClusterConfiguration>
  /** Name of the cluster that is meant; undefined: the one of this host. */
  readonly name?: string
  /** `If-Match`: the write is refused if it names another state than the present one. */
  readonly ifMatch: string | undefined
  /** Account of the caller. */
  readonly by: string
  /** The number of the desired state on the platform, where it ordered this. */
  readonly platformNumber?: number
  /** Called when the turn of the write has come, before anything is read. */
  readonly onTurn?: () => void
}

/** Request of a write or a rollback, before it is prepared and checked. */
export interface Draft {
  readonly record: ClusterRecord
  /** The document of GET now. */
  readonly shown: Revision
  readonly origin: 'update' | 'rollback'
  /** The whole configuration in plain text; undefined where nothing changes. */
  readonly plain: ClusterConfiguration | undefined
  readonly scheduleAt: number | null
  /** The revision whose copy of the definition is used; undefined: the definition is in a slot. */
  readonly copyOf: Revision | undefined
  /** Whether an older Kubernetes with a kept copy is desired, and later writes may be lost. */
  readonly hasCopy: boolean
}

export interface DraftOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly revisions: RevisionStore
  readonly clock: Pick<Clock, 'now'>
}

/** The cluster that a write is about. @throws AppError NotFound, ClusterDeleting, PreconditionFailed */
export function currentFor(
  { store, revisions }: DraftOptions,
  { name, ifMatch }: Pick<Write, 'name' | 'ifMatch'>,
): { readonly record: ClusterRecord; readonly shown: Revision; readonly document: ClusterConfiguration } {
  const record = store.current()
  if (!record) throw noCluster()
  if (name !== undefined && name !== record.name)
    throw new AppError(generalErrors.NotFound, `the cluster of this host is ${record.name}, not ${name}`)
  if (record.deleteRequestedAt !== null) throw deleting(record)
  const shown = shownRevision(revisions, record)
  const document = documentOf(record, shown)
  requireTag(ifMatch, etagOf(document), changedBy(shown))
  return { record, shown, document }
}

/** Of two operators at once the second learns who the first was. */
function changedBy({ generation, by, at, origin, outcome }: Revision): string {
  const who =
    by === ''
      ? 'by the host itself, as a way back'
      : `by ${by}${origin === 'rollback' ? ', as a rollback' : ''}`
  const state = ['waiting', 'held'].includes(outcome) ? ', which is not applied yet' : ''
  return `the cluster was changed since it was read: it has revision ${generation}${state}, accepted at ${formatTime(at)} ${who}; GET /v1/edge-mgmt/cluster, and change that`
}

/** The error of a change of a cluster whose deletion was asked for. */
export function deleting({
  name,
  uid,
  deleteRequestedAt,
}: Pick<ClusterRecord, 'name' | 'uid' | 'deleteRequestedAt'>) {
  const since = deleteRequestedAt === null ? '' : ` since ${formatTime(deleteRequestedAt)}`
  const message = `the cluster ${name} is being deleted${since}; the audit trail says who asked for it. Wait until GET /v1/edge-mgmt/cluster answers 404`
  return new AppError(clusterErrors.ClusterDeleting, message, { details: { uid } })
}

/** @throws AppError as `currentFor`; BadRequest and CannotChange naming the field */
export async function draftOf(options: DraftOptions, write: Write): Promise<Draft> {
  const { record, shown, document } = currentFor(options, write)
  const { name, summary } = record
  const edited = await write.edit(document, shown)
  refuseFixed(edited, document, summary.node)
  const scheduleAt = parseSchedule(edited.spec?.scheduleAt ?? '', options.clock.now(), shown.scheduleAt)
  const desired = storedForm({ ...edited, metadata: { ...edited.metadata, name } })
  const isKept = scheduleAt === scheduleOf(shown)
  // Before masks are replaced: masked values may not be readable any more.
  const isSame = (next: ClusterConfiguration, present: ClusterConfiguration | undefined) =>
    isKept && present !== undefined && canonicalText(next) === canonicalText(storedForm(present))
  const plain = isSame(desired, shown.posted) ? undefined : storedForm(unmask(desired, shown))
  const path = (configuration: ClusterConfiguration) => configuration.spec?.archiveUploadPath
  return {
    record,
    shown,
    origin: 'update',
    scheduleAt,
    plain: plain && isSame(plain, shown.plain) ? undefined : plain,
    copyOf: path(desired) === path(shown.posted) ? shown : undefined,
    hasCopy: false,
  }
}
