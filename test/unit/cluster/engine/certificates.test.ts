import { expect, it } from 'vitest'
import {
  dueCertificates,
  nextRenewalAt,
  renewalTimeOf,
  stateOf,
  type SeenAuthority,
  type SeenCertificate,
  type SeenCertificates,
} from '../../../../src/cluster/engine/certificates.ts'

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const begin = Date.parse('2026-11-23T18:00:00Z')

const certificate = (lifeMs: number, more: Partial<SeenCertificate> = {}): SeenCertificate => ({
  ...{ name: 'apiserver', authority: 'ca', renewedBy: 'kubeadm' },
  ...{ issuedAt: begin, writtenAt: begin, expiresAt: begin + lifeMs },
  ...more,
})
const authority = (lifeMs: number, more: Partial<SeenAuthority> = {}): SeenAuthority => ({
  ...{ name: 'ca', isOfCluster: true, issuedAt: begin, expiresAt: begin + lifeMs },
  ...more,
})
const seen = (
  certificates: readonly SeenCertificate[],
  authorities: readonly SeenAuthority[] = [authority(3_650 * day)],
): SeenCertificates => ({ authorities, certificates, unreadable: [] })
const isDue = (certificates: readonly SeenCertificate[], at: number) =>
  stateOf(seen(certificates), at).isRenewalDue

it.each([
  ['a year', 365 * day, 335 * day],
  ['90 days, where both are the same', 90 * day, 60 * day],
  ['30 days', 30 * day, 20 * day],
  ['10 minutes', 10 * minute, (20 / 3) * minute],
])(
  'a certificate of %s is renewed 30 days before its end, or with a third of its life left',
  (_w, life, at) => {
    const one = certificate(life)
    expect(renewalTimeOf(one)).toBeCloseTo(begin + at, -1)
    expect(isDue([one], begin + at - minute)).toBe(false)
    expect(isDue([one], begin + at + 1)).toBe(true)
  },
)

it('the life begins when the file was written: kubeadm may keep the first date of issue, which would make a renewed one due at once', () => {
  const weeks = 21 * day
  const renewed = certificate(weeks + 10 * minute, { writtenAt: begin + weeks })
  expect(isDue([renewed], begin + weeks + 6 * minute)).toBe(false)
  expect(isDue([renewed], begin + weeks + 7 * minute)).toBe(true)
  // A file that was put back from a copy may be newer than the end of its certificate.
  expect(isDue([certificate(hour, { writtenAt: begin + 2 * hour })], begin + hour)).toBe(true)
})

it('one that has ended, or begins later since the clock was set back, is overdue; one that ends soon is not', () => {
  const state = (at: number) => {
    const { isRenewalDue, isRenewalOverdue } = stateOf(
      seen([certificate(hour, { issuedAt: begin + 10 * minute })], [authority(day)]),
      at,
    )
    return [isRenewalDue, isRenewalOverdue]
  }
  expect(state(begin + 11 * minute)).toEqual([false, false])
  expect(state(begin + 50 * minute)).toEqual([true, false])
  expect(state(begin + hour)).toEqual([true, true])
  expect(state(begin + 5 * minute)).toEqual([true, true])
})

it('nothing is renewed while the clock is before the authorities were made: it is wrong', () => {
  expect(isDue([certificate(hour)], begin - 1)).toBe(false)
  expect(isDue([certificate(hour)], 0)).toBe(false)
})

it('the certificate of the client of the kubelet is made anew only when the kubelet did not do it', () => {
  const client = certificate(100 * hour, { name: 'kubelet-client', renewedBy: 'kubelet' })
  expect(isDue([client], begin + 94 * hour)).toBe(false)
  expect(dueCertificates(seen([client]), begin + 96 * hour)).toEqual([client])
  expect(nextRenewalAt(seen([client]))).toBeUndefined()
  const server = certificate(hour, { name: 'kubelet-server', renewedBy: 'none' })
  expect(stateOf(seen([server]), begin + day)).toEqual({
    ...{ isRenewalDue: false, isRenewalOverdue: false, endingCertificates: [], endingAuthorities: [] },
  })
})

it('one whose authority is elsewhere is not renewed, and is told 30 days before its end', () => {
  const external = certificate(365 * day, { renewedBy: 'external' })
  expect(stateOf(seen([external]), begin + 334 * day).endingCertificates).toEqual([])
  const state = stateOf(seen([external]), begin + 336 * day)
  expect(state.isRenewalDue).toBe(false)
  expect(state.endingCertificates).toEqual([
    expect.stringMatching(
      /^the certificate apiserver ends at 2027-11-23T18:00:00.000Z .*authority ca is not/,
    ),
  ])
})

it('an authority is told a year before its end, or with a third of a shorter life left', () => {
  const told = (lifeMs: number, at: number, more: Partial<SeenAuthority> = {}) =>
    stateOf(seen([], [authority(lifeMs, more)]), begin + at).endingAuthorities
  expect(told(3_650 * day, 3_284 * day)).toEqual([])
  expect(told(3_650 * day, 3_286 * day)).toEqual([
    expect.stringMatching(
      /^the certificate authority ca ends at 2036-11-20T18:00:00.000Z and is not renewed/,
    ),
  ])
  expect(told(300 * day, 199 * day)).toEqual([])
  expect(told(300 * day, 201 * day)).toHaveLength(1)
  expect(told(300 * day, 299 * day, { isOfCluster: false })).toEqual([])
})

it('the next renewal is that of the certificate that is due first', () => {
  expect(nextRenewalAt(seen([certificate(365 * day), certificate(90 * day)]))).toBe(begin + 60 * day)
  expect(nextRenewalAt(seen([]))).toBeUndefined()
})
