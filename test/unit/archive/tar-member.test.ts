import { describe, expect, it } from 'vitest'
import { withDefaults } from '../../../src/archive/limits.ts'
import { createTarHeaders } from '../../../src/archive/tar-headers.ts'
import { memberHeader } from '../../../src/archive/tar-member.ts'
import { paxRecord, rawMember } from '../../support/tar-bytes.ts'

const limits = withDefaults({ memberBytes: Number.MAX_SAFE_INTEGER })
const GiB = 2 ** 30

/** The member that headers, and the records before them, announce. */
function read(bytes: Buffer) {
  const headers = createTarHeaders(limits)
  for (let at = 0; at < bytes.length;) {
    const header = headers.addHeader(bytes.subarray(at, at + 512))
    at += 512
    if (header === 'end') return 'end'
    if ('member' in header) return header.member
    headers.addRecords(bytes.subarray(at, at + header.recordBytes))
    at += Math.ceil(header.recordBytes / 512) * 512
  }
  throw new Error('no member')
}

describe('the header of a member', () => {
  it.each([0, 1, 8 * GiB - 1, 8 * GiB, 20 * GiB + 1])(
    'has a size of %d bytes, also beyond 11 octal digits',
    (size) => {
      expect(read(memberHeader('blobs/sha256/x', size))).toMatchObject({
        path: 'blobs/sha256/x',
        sizeBytes: size,
      })
    },
  )

  it('has a long name and a large size in one record header', () => {
    const name = `${'ä'.repeat(80)}/b`
    expect(read(memberHeader(name, 9 * GiB))).toMatchObject({ path: name, sizeBytes: 9 * GiB })
  })
})

describe('a header of another tool', () => {
  it('has a size in base 256, as GNU tar writes 8 GiB and more', () => {
    const header = rawMember({ name: 'a' })
    header.fill(0, 124, 136)
    header[124] = 0x80
    header.writeUInt32BE(2, 128)
    header.write(' '.repeat(8), 148)
    const sum = header.subarray(0, 512).reduce((total, byte) => total + byte, 0)
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    expect(read(header)).toMatchObject({ sizeBytes: 8 * GiB })
  })

  it.each([
    [
      'a symbolic link',
      rawMember({ name: 'a/layer.tar', kind: '2', linkName: '../b/layer.tar' }),
      { kind: 'link', target: '../b/layer.tar' },
    ],
    [
      'a hard link',
      rawMember({ name: 'a', kind: '1', linkName: 'b', size: 9 }),
      { kind: 'hardLink', target: 'b', sizeBytes: 0 },
    ],
    ['a folder', rawMember({ name: 'a/', kind: '5' }), { kind: 'folder', path: 'a' }],
    ['a device', rawMember({ name: 'a', kind: '3' }), { kind: 'other' }],
    [
      'a long name of GNU',
      Buffer.concat([
        rawMember({ name: '././@LongLink', kind: 'L', content: `${'x/'.repeat(20)}y\0` }),
        rawMember({ name: 'x' }),
      ]),
      { path: `${'x/'.repeat(20)}y` },
    ],
    [
      'a long target of GNU',
      Buffer.concat([
        rawMember({ name: '././@LongLink', kind: 'K', content: 'far/away\0' }),
        rawMember({ name: 'x', kind: '2', linkName: 'f' }),
      ]),
      { target: 'far/away' },
    ],
    [
      'records of a time',
      Buffer.concat([
        rawMember({ name: 'p', kind: 'x', content: paxRecord('mtime', '1.5') }),
        rawMember({ name: 'x' }),
      ]),
      { path: 'x', kind: 'file' },
    ],
  ])('%s is read', (_what, bytes, member) => {
    expect(read(bytes)).toMatchObject(member)
  })

  it.each<[string, Buffer, string]>([
    ['a path out of the archive', rawMember({ name: '../a' }), 'MemberOutside'],
    ['an absolute path', rawMember({ name: '/a' }), 'MemberOutside'],
    ['a sparse file', rawMember({ name: 'a', kind: 'S' }), 'MemberKind'],
    ['a folder with content', rawMember({ name: 'a', kind: '5', size: 512 }), 'MemberKind'],
    ['a wrong checksum', rawMember({ name: 'a' }).fill('b', 0, 1), 'Damaged'],
    ['a name that is not UTF-8', rawMember({ name: Buffer.from([0x61, 0xff]) }), 'MemberName'],
    ['too long records', rawMember({ name: 'p', kind: 'x', size: 10_000_000 }), 'RecordInvalid'],
    [
      'a name for all members',
      Buffer.concat([rawMember({ name: 'p', kind: 'g', content: paxRecord('path', 'x') })]),
      'RecordInvalid',
    ],
    [
      'a size that is no number',
      rawMember({ name: 'p', kind: 'x', content: paxRecord('size', '-1') }),
      'RecordInvalid',
    ],
    [
      'records of a sparse file',
      rawMember({ name: 'p', kind: 'x', content: paxRecord('GNU.sparse.major', '1') }),
      'RecordInvalid',
    ],
  ])('%s is refused', (_what, bytes, reason) => {
    expect(() => read(bytes)).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ reason }) as object }),
    )
  })
})
