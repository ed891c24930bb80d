import { expect, it } from 'vitest'
import { causeOfReply } from '../../../src/uplink/cause.ts'
import { waitAfter } from '../../../src/uplink/client.ts'

it('doubles from a second to a minute, half of it by chance, or further where it may', () => {
  expect([1, 2, 3, 6, 7, 1_000_000].map((failures) => waitAfter(failures, 1))).toEqual([
    1_000, 2_000, 4_000, 32_000, 60_000, 60_000,
  ])
  expect(waitAfter(9, 1, undefined, 300_000)).toBe(256_000)
  expect(waitAfter(3, 0)).toBe(2_000)
})

it('obeys Retry-After up to an hour, never shorter than its own wait, and ignores what is no number', () => {
  expect(waitAfter(1, 0, '30')).toBe(30_000)
  expect(waitAfter(1, 0.5, '30')).toBe(30_500)
  expect(waitAfter(1, 0, '999999999')).toBe(3_600_000)
  expect(waitAfter(10, 1, '1')).toBe(60_000)
  expect(waitAfter(1, 1, 'Wed, 21 Oct 2015 07:28:00 GMT')).toBe(1_000)
})

it.each([
  [401, 'RegistrationTokenRefused', 'tokenRefused'],
  [409, 'HostAlreadyRegistered', 'alreadyRegistered'],
  [401, 'HostRemoved', 'removed'],
  [401, 'HostExistsTwice', 'existsTwice'],
  [429, 'TooManyRequests', 'busy'],
  [500, 'toString', 'platform'],
])('a reply %d %s is the cause %s', (status, code, kind) => {
  expect(causeOfReply(status, { code, message: 'no' })?.kind).toBe(kind)
})

it('a success has no cause, and an error without a body has one', () => {
  expect(causeOfReply(204, undefined)).toBeUndefined()
  expect(causeOfReply(502, undefined)).toMatchObject({ kind: 'platform' })
})
