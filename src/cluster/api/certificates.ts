import { nextRenewalAt, stateOf, type SeenCertificates } from '../engine/certificates.ts'
import type { StepRecord, StepStore } from '../loop/step-store.ts'
import {
  type Renewal,
  isDeleting,
  type ClusterRecord,
  type ClusterStore,
  isUnderWay,
} from '../cluster-store.ts'
import { renewalStep } from '../loop/step.ts'
import type { CertificateDetails } from '../schemas.ts'
import { uuidAt } from '../../base/uid.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { AddEvent } from '../events/event-log.ts'
import { deleting } from '../desired/draft.ts'
import { clusterErrors } from '../codes.ts'
import type { Engine } from '../engine/engine.ts'
import { noCluster } from './reading.ts'

export interface DetailsInput {
  readonly seen: SeenCertificates
  /** Name of the node of this host. */
  readonly node: string
  /** The last renewal that was asked for. */
  readonly renewal: Renewal | null
  readonly steps: readonly StepRecord[]
  /** Milliseconds since 1970. */
  readonly now: number
  /** Masks sensitive values of the cluster. */
  readonly hide: (text: string) => string
}

/** The certificates for the API: an authority that cannot be read is left out, and its certificates are below none. Pure. */
export function certificateDetails(input: DetailsInput): CertificateDetails {
  const { seen, node, renewal, steps, now, hide } = input
  const { isRenewalDue, endingCertificates, endingAuthorities } = stateOf(seen, now)
  const next = nextRenewalAt(seen)
  const step = steps.find(({ key }) => key === renewalStep)
  const reason = step && step.failures > 0 && renewal?.endedAt === null ? hide(step.reason) : ''
  return {
    needsRenewal: isRenewalDue,
    ...(next === undefined ? {} : { earliestAutoRenewalTime: timeOf(next) }),
    certificates: seen.authorities.map((authority) => ({
      name: authority.name,
      ...datesOf(authority),
      childCerts: seen.certificates
        .filter((each) => each.authority === authority.name)
        .map((each) => ({ name: each.name, nodeName: node, ...datesOf(each) })),
    })),
    problems: [...endingCertificates, ...endingAuthorities],
    ...(renewal
      ? {
          renewal: {
            uid: renewal.uid,
            by: renewal.by,
            creationTimestamp: timeOf(renewal.askedAt),
            ...(renewal.endedAt === null ? {} : { endTimestamp: timeOf(renewal.endedAt) }),
            ...(reason === '' ? {} : { reason }),
          },
        }
      : {}),
  }
}

const timeOf = (at: number) => new Date(at).toISOString()

const datesOf = ({ issuedAt, expiresAt }: { readonly issuedAt: number; readonly expiresAt: number }) => ({
  issueDate: timeOf(issuedAt),
  expirationDate: timeOf(expiresAt),
})

interface CertificatesOptions {
  readonly database: Database
  readonly store: Pick<ClusterStore, 'current' | 'noteRenewal'>
  readonly engine: Pick<Engine, 'certificates'>
  readonly steps: Pick<StepStore, 'list'>
  readonly add: AddEvent
  /** @throws AppError Busy while the host does something that a change of the cluster has to wait for */
  readonly refuseBusy: () => void
  /** A renewal is stored; the loop does it. */
  readonly onAsked: () => void
  readonly clock: Clock
}

/** The certificates of Kubernetes. Each throws AppError NotFound without a cluster. */
export interface Certificates {
  details(): Promise<CertificateDetails>
  /**
   * Asks for a renewal, which the loop does; again while one is under way: nothing.
   * @throws AppError ClusterDeleting, NoCertificates, Busy
   */
  renew(by: string): Promise<RenewalAsked>
}

interface RenewalAsked {
  readonly uid: string
  readonly cluster: Pick<ClusterRecord, 'uid' | 'name'>
  /** One was under way. */
  readonly isRepeated: boolean
}

export function createCertificates(options: CertificatesOptions): Certificates {
  const { database, store, engine, steps, add, refuseBusy, onAsked, clock } = options

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
        seen,
        node: summary.node.name,
        renewal,
        steps: steps.list(),
        now: clock.now(),
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
      // Other requests may have come while the files were read.
      const record = present()
      if (isUnderWay(record.renewal)) return underWay(record, record.renewal)
      refuseBusy()
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
  uid: renewal.uid,
  cluster: { uid, name },
  isRepeated: true,
})
