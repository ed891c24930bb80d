import { expect, it } from 'vitest'
import { certificateDetails, type DetailsInput } from '../../../../src/cluster/api/certificates.ts'
import { renewalStep } from '../../../../src/cluster/loop/step.ts'
import type { StepRecord } from '../../../../src/cluster/loop/step-store.ts'

const begin = Date.parse('2026-11-23T18:00:00Z')
const day = 86_400_000
const authorities = [
  { name: 'ca', isOfCluster: true, issuedAt: begin, expiresAt: begin + 3_650 * day },
  { name: 'etcd-ca', isOfCluster: true, issuedAt: begin, expiresAt: begin + 3_650 * day },
]
const life = {
  issuedAt: begin,
  writtenAt: begin,
  expiresAt: begin + 365 * day,
  renewedBy: 'kubeadm' as const,
}
const seen = {
  authorities,
  certificates: [
    { name: 'apiserver', authority: 'ca', ...life },
    { name: 'etcd-server', authority: 'etcd-ca', ...life, expiresAt: begin + 30 * day },
  ],
  unreadable: ['/etc/kubernetes/pki/front-proxy-client.crt cannot be used: it has no certificate'],
}
const input = { seen, node: 'node-1', renewal: null, steps: [], now: begin, hide: (text: string) => text }
const dates = { issueDate: '2026-11-23T18:00:00.000Z', expirationDate: '2027-11-23T18:00:00.000Z' }

it('shows authorities with what they have signed, on which node, and when the first of them is renewed', () => {
  expect(certificateDetails(input)).toEqual({
    needsRenewal: false,
    earliestAutoRenewalTime: '2026-12-13T18:00:00.000Z',
    certificates: [
      {
        ...{ name: 'ca', ...dates, expirationDate: '2036-11-20T18:00:00.000Z' },
        childCerts: [{ name: 'apiserver', nodeName: 'node-1', ...dates }],
      },
      {
        ...{ name: 'etcd-ca', ...dates, expirationDate: '2036-11-20T18:00:00.000Z' },
        childCerts: [
          {
            ...{ name: 'etcd-server', nodeName: 'node-1', ...dates },
            expirationDate: '2026-12-23T18:00:00.000Z',
          },
        ],
      },
    ],
    problems: seen.unreadable,
  })
  expect(certificateDetails({ ...input, now: begin + 21 * day }).needsRenewal).toBe(true)
})

it('a host without certificates has an empty list and no time of a renewal', () => {
  const none = { authorities: [], certificates: [], unreadable: [] }
  expect(certificateDetails({ ...input, seen: none })).toEqual({
    ...{ needsRenewal: false, certificates: [], problems: [] },
  })
})

it('a renewal that was asked for is shown until the next, while it is under way with why its last try failed', () => {
  const renewal = { uid: 'r1', by: 'ada', askedAt: begin, endedAt: null }
  const failed = { key: renewalStep, failures: 1, reason: 'kubeadm: hunter2' } as StepRecord
  const asked = { uid: 'r1', by: 'ada', creationTimestamp: '2026-11-23T18:00:00.000Z' }
  const shown = (more: Partial<DetailsInput>) => certificateDetails({ ...input, renewal, ...more }).renewal
  expect(shown({})).toEqual(asked)
  expect(shown({ steps: [failed], hide: (text) => text.replace('hunter2', '***') })).toEqual({
    ...asked,
    reason: 'kubeadm: ***',
  })
  expect(shown({ renewal: { ...renewal, endedAt: begin + 9_000 }, steps: [failed] })).toEqual({
    ...asked,
    endTimestamp: '2026-11-23T18:00:09.000Z',
  })
})
