import { nextRenewalAt, stateOf, type SeenCertificates } from '../engine/certificates/seen-certificates.ts'
import type { StepRecord } from '../steps/step-store.ts'
import type { Renewal } from './renewal.ts'
import { renewalStep } from './renewal-step.ts'
import type { CertificateDetails } from './schemas.ts'

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

/** The certificates for the API: an authority that cannot be read is left out, what it has signed is then below none. Pure. */
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
      ...{ name: authority.name, ...datesOf(authority) },
      childCerts: seen.certificates
        .filter((each) => each.authority === authority.name)
        .map((each) => ({ name: each.name, nodeName: node, ...datesOf(each) })),
    })),
    problems: [...endingCertificates, ...endingAuthorities],
    ...(renewal
      ? {
          renewal: {
            ...{ uid: renewal.uid, by: renewal.by, creationTimestamp: timeOf(renewal.askedAt) },
            ...(renewal.endedAt === null ? {} : { endTimestamp: timeOf(renewal.endedAt) }),
            ...(reason === '' ? {} : { reason }),
          },
        }
      : {}),
  }
}

const timeOf = (at: number) => new Date(at).toISOString()

const datesOf = ({ issuedAt, expiresAt }: { readonly issuedAt: number; readonly expiresAt: number }) => ({
  ...{ issueDate: timeOf(issuedAt), expirationDate: timeOf(expiresAt) },
})
