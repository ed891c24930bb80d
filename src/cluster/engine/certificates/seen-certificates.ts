import type { Validity } from './parse.ts'

/** What is on this host of the certificates of Kubernetes. */
export interface SeenCertificates {
  readonly authorities: readonly SeenAuthority[]
  readonly certificates: readonly SeenCertificate[]
  /** Files that are there and cannot be read, a sentence each. */
  readonly unreadable: readonly string[]
}

export interface SeenAuthority extends Validity {
  readonly name: string
  /** Whether it is one of kubeadm, on which the cluster stands; the other is that of the kubelet. */
  readonly isOfCluster: boolean
}

export interface SeenCertificate extends Validity {
  readonly name: string
  /** Name of its authority. */
  readonly authority: string
  /** When its file was written: kubeadm may keep `issuedAt` in a renewal. */
  readonly writtenAt: number
  /**
   * Who renews it: kubeadm, the kubelet for its client, or the owner of the key of an authority that is not on this host. `none`: the control
   * plane does not depend on it, as that of the server of the kubelet.
   */
  readonly renewedBy: 'kubeadm' | 'kubelet' | 'external' | 'none'
}

export const noCertificates: SeenCertificates = { authorities: [], certificates: [], unreadable: [] }

const dayMs = 86_400_000
const monthMs = 30 * dayMs
const yearMs = 365 * dayMs

/**
 * When edgehostd renews a certificate: 30 days before its end, or when a third of a shorter life is left. The kubelet renews that of its
 * client when 10 to 30 % of its life is left, so it is made anew only when less than that is left. Pure.
 * The life begins when the file was written, since kubeadm may keep the date of the first issue.
 */
export function renewalTimeOf({
  issuedAt,
  expiresAt,
  writtenAt,
  renewedBy,
}: Pick<SeenCertificate, 'issuedAt' | 'expiresAt' | 'writtenAt' | 'renewedBy'>): number {
  const lifeMs = Math.max(0, expiresAt - Math.max(issuedAt, writtenAt))
  return expiresAt - (renewedBy === 'kubelet' ? lifeMs / 20 : Math.min(monthMs, lifeMs / 3))
}

/** Whether a certificate has ended, or begins later. */
const isInvalid = ({ issuedAt, expiresAt }: Validity, now: number) => now < issuedAt || now >= expiresAt

/**
 * Whether the clock of this host may be believed: it is not before the authorities of the cluster were made, as that of a host without a
 * battery is until it asked for the time. What would be renewed then would have ended when the clock is right.
 */
const isClockRight = ({ authorities }: SeenCertificates, now: number) =>
  authorities.every(({ isOfCluster, issuedAt }) => !isOfCluster || now >= issuedAt)

/** What edgehostd has to renew now. @param now milliseconds since 1970 */
export const dueCertificates = (seen: SeenCertificates, now: number): readonly SeenCertificate[] =>
  isClockRight(seen, now)
    ? seen.certificates.filter(
        (each) => isRenewedHere(each) && (isInvalid(each, now) || now >= renewalTimeOf(each)),
      )
    : []

const isRenewedHere = ({ renewedBy }: SeenCertificate) => renewedBy === 'kubeadm' || renewedBy === 'kubelet'

/** How the certificates are at a time. */
export interface CertificateState {
  /** They have to be renewed now. */
  readonly isRenewalDue: boolean
  /** One has ended, or begins later, as after the clock was set back: without a renewal the control plane does not work. */
  readonly isRenewalOverdue: boolean
  /** What ends soon, or cannot be read, and is not renewed by itself; sentences for operators. */
  readonly endingCertificates: readonly string[]
  /** Authorities that end within a year, or have less than a third of a shorter life left; sentences for operators. */
  readonly endingAuthorities: readonly string[]
}

/** @param now milliseconds since 1970 */
export function stateOf(seen: SeenCertificates, now: number): CertificateState {
  const due = dueCertificates(seen, now)
  return {
    isRenewalDue: due.length > 0,
    isRenewalOverdue: due.some((each) => isInvalid(each, now)),
    endingCertificates: [
      ...seen.unreadable,
      ...seen.certificates
        .filter((each) => each.renewedBy === 'external' && now >= renewalTimeOf(each))
        .map(endingText),
    ],
    endingAuthorities: seen.authorities
      .filter((each) => each.isOfCluster && now >= warningTimeOf(each))
      .map(
        ({ name, expiresAt }) =>
          `the certificate authority ${name} ends at ${timeOf(expiresAt)} and is not renewed; before that, create the cluster again, or replace the authority by hand`,
      ),
  }
}

const endingText = ({ name, authority, expiresAt }: SeenCertificate) =>
  `the certificate ${name} ends at ${timeOf(expiresAt)} and is not renewed by edgehostd: the private key of its authority ${authority} is not on this host; renew it where that is`

const warningTimeOf = ({ issuedAt, expiresAt }: Validity) =>
  expiresAt - Math.min(yearMs, Math.max(0, expiresAt - issuedAt) / 3)

const timeOf = (at: number) => new Date(at).toISOString()

/** When edgehostd renews by itself the next time, milliseconds since 1970; undefined where nothing can be renewed. */
export function nextRenewalAt({ certificates }: SeenCertificates): number | undefined {
  const times = certificates.filter(({ renewedBy }) => renewedBy === 'kubeadm').map(renewalTimeOf)
  return times.length === 0 ? undefined : Math.min(...times)
}
