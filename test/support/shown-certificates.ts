import { certificateDetails } from '../../src/cluster/api/certificates.ts'
import type { RenewalAccepted } from '../../src/cluster/schemas.ts'

const begin = Date.parse('2026-01-31T09:45:00Z')
const dayMs = 86_400_000
const of = (days: number) => ({ issuedAt: begin, expiresAt: begin + days * dayMs })
const signed = (name: string, authority: string) => ({
  ...{ name, authority, ...of(365), writtenAt: begin, renewedBy: 'kubeadm' as const },
})

/** A reply of `GET /v1/edge-mgmt/cluster/certificates`. */
export const shownCertificates = certificateDetails({
  seen: {
    authorities: ['ca', 'etcd-ca'].map((name) => ({ name, isOfCluster: true, ...of(3_650) })),
    certificates: [signed('admin.conf', 'ca'), signed('apiserver', 'ca'), signed('etcd-server', 'etcd-ca')],
    unreadable: [],
  },
  ...{ node: 'edge-1', steps: [], now: begin, hide: (text) => text },
  renewal: {
    ...{ uid: '019c1342-8b60-7c3a-9d52-2f6d7c1b0a44', by: 'alice' },
    ...{ askedAt: begin + 3_600_000, endedAt: begin + 3_640_000 },
  },
})

/** A reply of `POST /v1/edge-mgmt/cluster/renew-certificates`. */
export const acceptedRenewal: RenewalAccepted = {
  uid: '019c1342-8b60-7c3a-9d52-2f6d7c1b0a44',
  message: 'the certificates are being renewed',
}
