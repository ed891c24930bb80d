import type { BusyReason } from '../../root/room.ts'
import { isDeleting, isUnderWay, type ClusterRecord } from '../cluster-store.ts'
import type { ClusterRevisions } from '../desired/schemas.ts'
import type { StepRecord } from '../loop/step-store.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'

interface ClusterWork {
  readonly record: Pick<ClusterRecord, 'name' | 'deleteRequestedAt' | 'renewal' | 'sensitive'>
  readonly steps: readonly Pick<StepRecord, 'title' | 'state'>[]
  readonly revisions: ClusterRevisions['items']
}

/**
 * What a stop of the host would break off. A step goes on after it, and a change too; but an upgrade that is cut off takes longer, and its time
 * runs out. A first creation that waits for its pods is none: an operator may reboot to help it. Pure.
 */
export function busyWithCluster({ record, steps, revisions }: ClusterWork): readonly BusyReason[] {
  const { name, renewal, sensitive } = record
  if (isDeleting(record))
    return [{ reason: 'ClusterDeletion', message: `the cluster ${name} is being deleted` }]
  const hide = createHideOf(sensitive)
  const change = revisions.find(
    ({ isActive, outcome, origin }) => isActive && outcome === 'applying' && origin !== 'create',
  )
  return [
    ...(change
      ? [{ reason: 'ClusterChange', message: `revision ${change.revision} of the cluster is being applied` }]
      : []),
    ...(isUnderWay(renewal)
      ? [{ reason: 'CertificateRenewal', message: 'the certificates of the cluster are being renewed' }]
      : []),
    ...steps
      .filter(({ state }) => state === 'running')
      .map(({ title }) => ({ reason: 'ClusterStep', message: `a step of the cluster: ${hide(title)}` })),
  ]
}
