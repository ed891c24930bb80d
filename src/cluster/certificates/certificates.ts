import { uuidAt } from '../../base/uid.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { AddEvent } from '../add-event.ts'
import { deleting } from '../change/draft.ts'
import { isDeleting, type ClusterRecord, type ClusterStore } from '../cluster-store.ts'
import { clusterErrors } from '../codes.ts'
import type { Engine } from '../engine/engine.ts'
import { noCluster } from '../reading.ts'
import type { StepStore } from '../steps/step-store.ts'
import { certificateDetails } from './certificate-details.ts'
import { isUnderWay, type Renewal } from './renewal.ts'
import type { CertificateDetails } from './schemas.ts'

export interface CertificatesOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'noteRenewal'>
  readonly engine: Pick<Engine, 'certificates'>
  readonly steps: Pick<StepStore, 'list'>
  readonly add: AddEvent
  /** A renewal is stored; the loop does it. */
  readonly onAsked: () => void
  readonly clock: Clock
}

/** The certificates of Kubernetes. Each throws AppError NotFound without a cluster. */
export interface Certificates {
  details(): Promise<CertificateDetails>
  /**
   * Asks for a renewal, which the loop does; again while one is under way: nothing.
   * @throws AppError ClusterDeleting, NoCertificates
   */
  renew(by: string): Promise<RenewalAsked>
}

export interface RenewalAsked {
  readonly uid: string
  readonly cluster: Pick<ClusterRecord, 'uid' | 'name'>
  /** One was under way. */
  readonly isRepeated: boolean
}

export function createCertificates(options: CertificatesOptions): Certificates {
  const { database, store, engine, steps, add, onAsked, clock } = options

  function current(): ClusterRecord {
    const record = store.current()
    if (!record) throw noCluster()
    return record
  }
  function present(): ClusterRecord {
    const record = current()
    if (isDeleting(record)) throw deleting(record)
    return record
  }

  return {
    async details() {
      current()
      const seen = await engine.certificates()
      const { summary, renewal, sensitive } = current()
      return certificateDetails({
        ...{ seen, node: summary.node.name, renewal, steps: steps.list(), now: clock.now() },
        hide: createHideOf(sensitive),
      })
    },
    async renew(by) {
      const before = present()
      if (isUnderWay(before.renewal)) return underWay(before, before.renewal)
      const { certificates, unreadable } = await engine.certificates()
      if (certificates.length === 0 && unreadable.length === 0)
        throw new AppError(
          clusterErrors.NoCertificates,
          'the control plane is not set up yet, so it has no certificates to renew',
        )
      // Other requests may have come while the files were looked at.
      const record = present()
      if (isUnderWay(record.renewal)) return underWay(record, record.renewal)
      const now = clock.now()
      const renewal = { uid: uuidAt(now), by, askedAt: now, endedAt: null }
      database.transaction(() => {
        store.noteRenewal(renewal)
        add(record, { reason: 'RenewalRequested', message: `${by} asked for a renewal of the certificates` })
      })
      onAsked()
      return { ...underWay(record, renewal), isRepeated: false }
    },
  }
}

const underWay = ({ uid, name }: ClusterRecord, renewal: Renewal): RenewalAsked => ({
  ...{ uid: renewal.uid, cluster: { uid, name }, isRepeated: true },
})
