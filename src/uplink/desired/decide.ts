import type { Announcement, KeptOrder } from './desired-store.ts'
import type { wantedReasons } from '../schemas.ts'

/** The cluster of this host, as far as decisions depend on it. */
export interface ClusterNow {
  readonly uid: string
  readonly name: string
  readonly isDeleting: boolean
  /** The newest requested revision, not one that the host made to go back. */
  readonly newest: {
    readonly revision: number
    /** Null where it was requested on this host. */
    readonly platformNumber: number | null
    readonly outcome: RevisionOutcome
    readonly reason: string
  }
  /** The applied revision; older than the newest one where the host has gone back from that. */
  readonly active: { readonly revision: number; readonly outcome: RevisionOutcome }
}

type RevisionOutcome = 'waiting' | 'held' | 'applying' | 'good' | 'failed' | 'rolledBack' | 'superseded'

/** Progress of the desired state: the condition `Wanted` of the cluster there. */
export interface DesiredCondition {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: (typeof wantedReasons)[number]
  /** For operators; secrets are masked. May be empty. */
  readonly message: string
  /** The number of the desired state that it is about. */
  readonly number: number
}

/** Inputs of a decision. */
export interface DesiredInput {
  /** Announcement of the last heartbeat; undefined for nothing, and before the first one. */
  readonly announced: Announcement | undefined
  /** Of the platform of this host; undefined where it is not known. */
  readonly tenantUid: string | undefined
  readonly kept: KeptOrder | undefined
  readonly cluster: ClusterNow | undefined
  /** Whether content has come since content was missing. */
  readonly hasNewContent: boolean
  /** ETag fetched since the start only to look for another cluster, which is an older state of the same. */
  readonly seenEtag: string | undefined
}

export type Decision =
  | { readonly kind: 'rest'; readonly condition: DesiredCondition | undefined }
  | { readonly kind: 'fetch' }
  /** The kept order becomes this; nothing is done. */
  | { readonly kind: 'note'; readonly kept: KeptOrder }
  /** The deletion that the platform requested has ended. */
  | { readonly kind: 'gone'; readonly kept: KeptOrder }

/** Next action for the desired state of the platform. Pure. */
export function decide(input: DesiredInput): Decision {
  const { announced, tenantUid, kept, cluster } = input
  const isGone = kept?.outcome === 'deleting' && cluster?.uid !== kept.uid
  if (isGone) return { kind: 'gone', kept: { ...kept, outcome: 'deleted' } }
  const rest = (condition = conditionOf(kept, cluster, announced)): Decision => ({ kind: 'rest', condition })
  if (!announced) return rest()
  // The deletion of another cluster than the one here takes nothing away, and is reported as done.
  const isDeletion = announced.isDeletion === true
  const isOfOther =
    !isDeletion && announced.uid !== undefined && cluster !== undefined && cluster.uid !== announced.uid
  const isOtherTenant = ![undefined, '', kept?.tenantUid].includes(tenantUid) && kept?.tenantUid !== ''
  // The first order of this platform, or for this cluster.
  if (!kept || isOtherTenant || (announced.uid !== undefined && announced.uid !== kept.uid)) {
    // An unknown cluster may be the desired one: the file with the kept order may be lost.
    const mayBeDesired = kept === undefined && announced.uid === undefined
    const isDesired = announced.uid !== undefined && announced.uid === cluster?.uid
    if (kept && announced.etag === input.seenEtag) return rest(newer(announced, kept))
    return !cluster || mayBeDesired || isDesired || isDeletion
      ? { kind: 'fetch' }
      : rest(exists(announced.number, cluster))
  }
  if (isOfOther) return rest(exists(announced.number, cluster))
  const { number, etag } = announced
  const isSame = number === kept.number && etag === kept.etag
  if (number < kept.number || (number === kept.number && !isSame)) {
    // Numbers of another cluster begin anew; only the download shows which one is desired.
    const mayBeOther = announced.uid === undefined && !cluster && kept.outcome === 'deleted'
    return mayBeOther && etag !== input.seenEtag ? { kind: 'fetch' } : rest(newer(announced, kept))
  }
  if (isChangedHere(cluster, kept))
    // Earlier orders of the platform do not take it back; a new one does.
    return {
      kind: 'note',
      kept: { ...kept, number, etag, outcome: 'newerOnHost', revision: cluster?.newest.revision ?? 0 },
    }
  if (!isSame) return { kind: 'fetch' }
  const isPossibleNow =
    (kept.outcome === 'contentMissing' && input.hasNewContent) ||
    (kept.outcome === 'clusterExists' && (!cluster || cluster.uid === kept.uid))
  return isPossibleNow ? { kind: 'fetch' } : rest()
}

/** Whether the newest revision was requested on this host, and the platform does not know of it. */
const isChangedHere = (cluster: ClusterNow | undefined, kept: KeptOrder): boolean =>
  cluster?.uid === kept.uid &&
  !cluster.isDeleting &&
  cluster.newest.platformNumber === null &&
  cluster.newest.revision !== kept.revision &&
  // The request of this host has failed, and the next order of the platform was there already.
  !(cluster.active.revision === kept.revision && hasFailed(cluster.newest))

/** The condition of the kept order, while nothing is being done. Pure. */
export function conditionOf(
  kept: KeptOrder | undefined,
  cluster: ClusterNow | undefined,
  announced?: Announcement,
): DesiredCondition | undefined {
  const isDeletion = announced?.isDeletion === true && announced.etag === kept?.etag
  return kept && { ...judge(kept, cluster, isDeletion), number: kept.number }
}

type Judgement = Omit<DesiredCondition, 'number'>

function judge(kept: KeptOrder, cluster: ClusterNow | undefined, isDeletion: boolean): Judgement {
  const { message } = kept
  const own = cluster?.uid === kept.uid ? cluster : undefined
  switch (kept.outcome) {
    case 'applied':
      return own && !own.isDeleting ? appliedOf(revisionOf(kept, own)) : deletedHere
    case 'deleting':
      return { status: 'Unknown', reason: 'Deleting', message: '' }
    case 'deleted':
      return { status: 'True', reason: 'Deleted', message: '' }
    case 'newerOnHost':
      return own && !own.isDeleting
        ? {
            status: 'False',
            reason: 'NewerOnHost',
            message: `the cluster was changed on this host, revision ${own.newest.revision}; ${isDeletion ? deletionAgain : 'apply what is wanted again on the platform to take it back'}`,
          }
        : deletedHere
    case 'refused':
      return { status: 'False', reason: 'Refused', message }
    case 'contentMissing':
      return { status: 'False', reason: 'ContentMissing', message }
    case 'clusterExists':
      return { status: 'False', reason: 'ClusterExists', message }
  }
}

const hasFailed = ({ outcome }: Pick<Applied, 'outcome'>) => outcome === 'failed' || outcome === 'rolledBack'

/** The revision that a number made, or found there after a newer one had failed. */
const revisionOf = ({ revision }: KeptOrder, { newest, active }: ClusterNow): Applied =>
  revision === active.revision && revision !== newest.revision ? { ...active, reason: '' } : newest

type Applied = Pick<ClusterNow['newest'], 'revision' | 'outcome' | 'reason'>

function appliedOf({ revision, outcome, reason }: Applied): Judgement {
  if (outcome === 'good') return { status: 'True', reason: 'Applied', message: `revision ${revision}` }
  if (outcome === 'held' || hasFailed({ outcome }))
    return {
      status: 'False',
      reason: 'Refused',
      message: `revision ${revision} ${outcome === 'held' ? 'is held' : 'has failed, and the host has gone back'}: ${reason}`,
    }
  return { status: 'Unknown', reason: 'Applying', message: `revision ${revision}` }
}

const deletedHere: Judgement = {
  status: 'False',
  reason: 'DeletedOnHost',
  message: 'the cluster was deleted on this host; apply it again on the platform to make it again',
}

/** A deletion was decided before later changes of the cluster. */
const deletionAgain =
  'the platform wants it deleted, and this host waits: delete it there once more, or take the deletion back there'

const newer = ({ number, isDeletion }: Announcement, kept: KeptOrder): DesiredCondition => ({
  status: 'False',
  reason: 'NewerOnHost',
  number,
  message: `the platform wants number ${number}, and this host has dealt with ${kept.number}, as where the platform was restored from an older backup; ${isDeletion === true ? deletionAgain : 'apply what is wanted again there'}`,
})

const exists = (number: number, { name }: Pick<ClusterNow, 'name'>): DesiredCondition => ({
  status: 'False',
  reason: 'ClusterExists',
  number,
  message: `this host has the cluster ${name}, which is not the one that the platform wants; delete it on this host first`,
})

const words: Readonly<Record<DesiredCondition['reason'], string>> = {
  Applied: 'the cluster is as desired there',
  Downloading: 'the desired cluster is being downloaded',
  Applying: 'the desired cluster is being applied',
  DownloadFailed: 'the desired cluster cannot be downloaded',
  SumWrong: 'the download had another sum',
  Refused: 'the desired cluster was refused',
  ContentMissing: 'content is missing for the desired cluster',
  NewerOnHost: 'this host is newer than the desired cluster',
  DeletedOnHost: 'the cluster was deleted on this host',
  ClusterExists: 'this host has another cluster than desired there',
  Deleting: 'the cluster is being deleted',
  Deleted: 'the cluster is deleted',
}

/** A condition in a few words, for the console: without text that came over the network. */
export const conditionInWords = ({ reason }: DesiredCondition): string => words[reason]
