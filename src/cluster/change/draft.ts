import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { requireTag } from '../../errors/refused-field.ts'
import type { Clock } from '../../system/clock.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import { clusterErrors } from '../codes.ts'
import { canonicalText } from '../configuration/canonical.ts'
import { noCluster } from '../reading.ts'
import { documentOf, etagOf, scheduleOf } from '../revisions/document.ts'
import type { Revision } from '../revisions/revision.ts'
import type { RevisionStore } from '../revisions/revision-store.ts'
import { shownRevision } from '../revisions/shown.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import { refuseFixed } from './cannot-change.ts'
import { storedForm, unmask } from './document.ts'
import { parseSchedule } from './schedule.ts'

/** A write of the configuration. */
export interface Write {
  /** Makes the wanted configuration of what GET gives. @throws AppError BadRequest */
  readonly edit: (shown: ClusterConfiguration, revision: Revision) => Promise<ClusterConfiguration>
  /** Name of the cluster that is meant; undefined: the one of this host. */
  readonly name?: string
  /** `If-Match`: the write is refused if it names another state than the present one. */
  readonly ifMatch: string | undefined
  /** Account of the caller. */
  readonly by: string
  /** The number of what is wanted on the platform, where the platform wants it. */
  readonly platformNumber?: number
  /** Called when the turn of the write has come, before anything is read. */
  readonly onTurn?: () => void
}

/** What a write or a rollback wants, before it is prepared and checked. */
export interface Draft {
  readonly record: ClusterRecord
  /** What GET shows now. */
  readonly shown: Revision
  readonly origin: 'update' | 'rollback'
  /** The whole configuration in plain text; undefined where nothing changes. */
  readonly plain: ClusterConfiguration | undefined
  readonly scheduleAt: number | null
  /** The revision whose copy of the definition is used; undefined: the definition is in a slot. */
  readonly copyOf: Revision | undefined
  /** Whether an older Kubernetes is wanted of which a copy is kept, and what was written since may be lost. */
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
  const advice = 'the cluster was changed since it was read: GET /v1/edge-mgmt/cluster, and change that'
  requireTag(ifMatch, etagOf(document), advice)
  return { record, shown, document }
}

export const deleting = ({ name, uid }: Pick<ClusterRecord, 'name' | 'uid'>) =>
  new AppError(clusterErrors.ClusterDeleting, `the cluster ${name} is being deleted`, { details: { uid } })

/** @throws AppError as `currentFor`; BadRequest and CannotChange naming the field */
export async function draftOf(options: DraftOptions, write: Write): Promise<Draft> {
  const { record, shown, document } = currentFor(options, write)
  const { name, summary } = record
  const edited = await write.edit(document, shown)
  refuseFixed(edited, document, summary.node)
  const scheduleAt = parseSchedule(edited.spec?.scheduleAt ?? '', options.clock.now(), shown.scheduleAt)
  const wanted = storedForm({ ...edited, metadata: { ...edited.metadata, name } })
  const isKept = scheduleAt === scheduleOf(shown)
  // Before masks are replaced: what is masked may not be readable any more.
  const isSame = (next: ClusterConfiguration, present: ClusterConfiguration | undefined) =>
    isKept && present !== undefined && canonicalText(next) === canonicalText(storedForm(present))
  const plain = isSame(wanted, shown.posted) ? undefined : storedForm(unmask(wanted, shown))
  const path = (configuration: ClusterConfiguration) => configuration.spec?.archiveUploadPath
  return {
    ...{ record, shown, origin: 'update', scheduleAt },
    plain: plain && isSame(plain, shown.plain) ? undefined : plain,
    copyOf: path(wanted) === path(shown.posted) ? shown : undefined,
    hasCopy: false,
  }
}
