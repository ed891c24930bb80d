import { describe, expect, it } from 'vitest'
import { bundleArchiveLimits, type ArchiveLimits } from '../../../src/archive/limits.ts'
import { memberHeader } from '../../../src/archive/tar-member.ts'
import { nextMember } from '../../../src/archive/tar-reader.ts'
import { paxRecord, rawMember } from '../../support/tar-bytes.ts'

const GiB = 2 ** 30
const linked: ArchiveLimits = { ...bundleArchiveLimits, areLinksAllowed: true }

/** The member that headers, and the records before them, announce. */
function read(bytes: Buffer, limits = linked) {
  let at = 0
  const take = async (count: number) => bytes.subarray(at, (at += count))
  return nextMember({ take, skip: async (count) => void (at += count) }, limits)
}

describe('the header of a member', () => {
  it.each([0, 1, 8 * GiB - 1, 8 * GiB, 20 * GiB + 1])(
    'has a size of %d bytes, also beyond 11 octal digits',
    async (size) => {
      expect(await read(memberHeader('blobs/sha256/x', size))).toMatchObject({ name: 'blobs/sha256/x', size })
    },
  )

  it('has a long name and a large size in one record header', async () => {
    const name = `${'ä'.repeat(80)}/b`
    expect(await read(memberHeader(name, 9 * GiB))).toMatchObject({ name, size: 9 * GiB })
  })
})

describe('a link', () => {
  const bytes = (...members: Parameters<typeof rawMember>[0][]) => Buffer.concat(members.map(rawMember))
  it.each([
    [
      'symbolic',
      bytes({ name: 'a/layer.tar', kind: '2', linkName: '../b/layer.tar' }),
      { kind: 'link', target: '../b/layer.tar' },
    ],
    [
      'hard, with the size of its file',
      bytes({ name: 'a', kind: '1', linkName: 'b', size: 9 }),
      { kind: 'hardLink', target: 'b', size: 0 },
    ],
    [
      'with a long target and a long name of GNU tar',
      bytes(
        { name: '././@LongLink', kind: 'K', content: 'far/away\0' },
        { name: '././@LongLink', kind: 'L', content: 'near/by\0' },
        { name: 'x', kind: '2', linkName: 'f' },
      ),
      { name: 'near/by', target: 'far/away' },
    ],
    [
      'with its target in a record of pax',
      bytes(
        { name: 'p', kind: 'x', content: paxRecord('linkpath', 'far/away') },
        { name: 'x', kind: '2', linkName: 'f' },
      ),
      { kind: 'link', target: 'far/away' },
    ],
  ])('that is %s is read where links are allowed, and refused elsewhere', async (_what, archive, member) => {
    expect(await read(archive)).toMatchObject(member)
    await expect(read(archive, bundleArchiveLimits)).rejects.toThrow()
  })

  it.each([
    ['two long targets', ['K', 'K']],
    ['a long name after records of pax', ['x', 'L']],
    ['a pair and one more', ['L', 'K', 'L']],
  ])('%s before one member are refused', async (_what, kinds) => {
    const contents: Readonly<Record<string, string | Buffer>> = {
      x: paxRecord('mtime', '1'),
      K: 'k\0',
      L: 'l\0',
    }
    const headers = kinds.map((kind) => ({ name: 'h', kind, content: contents[kind]! }))
    await expect(read(bytes(...headers, { name: 'x', kind: '2' }))).rejects.toMatchObject({
      details: { reason: 'RecordInvalid' },
    })
  })
})
