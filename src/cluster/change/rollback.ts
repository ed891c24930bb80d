import { AppError } from '../../errors/app-error.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { ClusterRecord } from '../cluster-store.ts'
import { clusterErrors } from '../codes.ts'
import type { Revision } from '../revisions/revision.ts'
import type { RevisionStore } from '../revisions/revision-store.ts'
import { currentFor, type Draft, type DraftOptions, type Write } from './draft.ts'
import { isOlder } from './version.ts'

export interface Rollback extends Pick<Write, 'ifMatch' | 'by' | 'onTurn'> {
  /** Undefined: the last good revision before the present one. */
  readonly revision: number | undefined
  /** What was written to the API of Kubernetes since the copy may be lost. */
  readonly discardChanges: boolean
}

/** When the copy of Kubernetes was made to which a revision can go back; undefined where none is kept. Milliseconds since 1970. */
export type CopyTime = (revision: Revision) => Promise<number | undefined>

/** @throws AppError as `currentFor`; BadRequest, WouldDiscardChanges */
export async function rollbackOf(
  options: DraftOptions & { readonly copyTime: CopyTime },
  rollback: Rollback,
): Promise<Draft> {
  const { record, shown } = currentFor(options, rollback)
  const target = targetOf(options.revisions, record, shown, rollback.revision)
  const version = target.summary.kubernetes.version
  const present = record.summary.kubernetes.version
  const copiedAt = isOlder(version, present) ? await options.copyTime(target) : undefined
  if (copiedAt !== undefined && !rollback.discardChanges) {
    const time = new Date(copiedAt).toISOString()
    throw new AppError(
      clusterErrors.WouldDiscardChanges,
      `revision ${target.generation} has Kubernetes ${version}, and the cluster ${present}: the copy of ${time} would be restored, and what was written to the API of Kubernetes since then be lost; send discardChanges true to do that`,
      { details: { copyTimestamp: time } },
    )
  }
  if (target.generation === shown.generation) return draft(undefined)
  if (!target.plain)
    throw refuse(
      `${target.generation} cannot be applied again: its sensitive values cannot be read any more, since the secret of the state folder was replaced; PUT /v1/edge-mgmt/cluster with the values instead`,
    )
  return draft(target.plain)

  function draft(plain: Draft['plain']): Draft {
    return {
      ...{ record, shown, origin: 'rollback', plain, scheduleAt: null, copyOf: target },
      hasCopy: copiedAt !== undefined,
    }
  }
}

function targetOf(
  revisions: RevisionStore,
  { generation, goodGeneration }: ClusterRecord,
  shown: Revision,
  wanted: number | undefined,
): Revision {
  const all = revisions.list()
  const listed = 'GET /v1/edge-mgmt/cluster/revisions lists them'
  if (wanted !== undefined) {
    const found = all.find((each) => each.generation === wanted)
    if (found) return found
    throw refuse(`${wanted} is not kept; ${listed}`)
  }
  const before = all.find((each) =>
    // While a revision is being applied, waits or is held, the last good one is the one before it.
    (goodGeneration !== generation || shown.generation !== generation) && goodGeneration !== 0
      ? each.generation === goodGeneration
      : each.outcome === 'good' && each.generation !== generation,
  )
  if (before) return before
  throw refuse(`has to be given: no revision before the present one was good; ${listed}`)
}

const refuse = (reason: string) => refusedField('revision', reason)
