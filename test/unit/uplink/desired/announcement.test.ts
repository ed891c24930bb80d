import { expect, it } from 'vitest'
import { parseAnnouncement, sumIn } from '../../../../src/uplink/desired/desired-store.ts'

const sum = 'ab'.repeat(16)
const uid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a11'

it('the header says number and ETag, and maybe the uid of the cluster', () => {
  expect(parseAnnouncement(`number=7, etag="7-${sum}"`)).toEqual({
    number: 7,
    etag: `7-${sum}`,
    uid: undefined,
  })
  expect(parseAnnouncement(`uid="${uid}",etag="7-${sum}", number=7`)?.uid).toBe(uid)
  expect(parseAnnouncement(`number=7, etag="7-${sum}", later=3`)?.number).toBe(7)
  expect(sumIn(`7-${sum}`)).toBe(sum)
})

it.each([
  undefined,
  '',
  'number=7',
  `number=8, etag="7-${sum}"`,
  `number=0, etag="0-${sum}"`,
  `number=-1, etag="-1-${sum}"`,
  `number=7, etag="7-${sum}`,
  `number=7 etag="7-${sum}"`,
  `number=7, etag="7-${sum.toUpperCase()}"`,
  `number=7, etag="7-${sum}\\""`,
  `number=${'9'.repeat(16)}, etag="7-${sum}"`,
  `${'a=1, '.repeat(200)}number=7, etag="7-${sum}"`,
])('%s is none', (header) => {
  expect(parseAnnouncement(header)).toBeUndefined()
})
