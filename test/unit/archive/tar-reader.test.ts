import { Readable } from 'node:stream'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { decompress } from '../../../src/archive/compression.ts'
import { bundleArchiveLimits, defaultLimits, type ArchiveLimits } from '../../../src/archive/limits.ts'
import { readTar } from '../../../src/archive/tar-reader.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { paxRecord, rawMember, rawTar, type RawMember } from '../../support/tar-bytes.ts'

const GiB = 2 ** 30
const large = 9 * GiB

/** The header of a member with a size in base 256, as GNU tar writes it; without the content. */
function largeHeader(size: number, name = 'large'): Buffer {
  const header = rawMember({ name, size: 0 }).subarray(0, 512)
  header.fill(0, 124, 136)
  header[124] = 0x80
  header.writeUIntBE(size, 130, 6)
  return withSum(header)
}

function withSum(header: Buffer): Buffer {
  header.write(' '.repeat(8), 148)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

const recordsOf = (...records: Buffer[]): RawMember => ({
  name: 'PaxHeaders/x',
  kind: 'x',
  content: Buffer.concat(records),
})
const record = (key: string, value: string) => recordsOf(paxRecord(key, value))

/** Reads headers only, since the content of large members is not there. */
async function firstMember(bytes: Buffer, limits: ArchiveLimits = bundleArchiveLimits) {
  for await (const { name, kind, sizeBytes } of readTar(Readable.from([bytes]), limits))
    return { name, kind, sizeBytes }
  return undefined
}

async function list(bytes: Buffer, limits = bundleArchiveLimits, pieceBytes = 997) {
  const pieces = function* () {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
  }
  const members: [string, string][] = []
  for await (const { name, content } of readTar(Readable.from(pieces()), limits)) {
    const parts: Buffer[] = []
    for await (const piece of content) parts.push(piece)
    members.push([name, Buffer.concat(parts).toString()])
  }
  return members
}

async function reasonOf(work: Promise<unknown>): Promise<unknown> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error, String(error)).toBeInstanceOf(AppError)
  return (error as AppError).details?.reason
}

describe('members', () => {
  const members = [
    { name: 'a', content: 'x'.repeat(2_000) },
    { name: 'folder/', kind: '5' },
    { name: 'empty' },
    { name: 'b', content: 'y'.repeat(512) },
  ]

  it.each([1, 511, 512, 513, 100_000])('members are read from pieces of %i bytes', async (pieceBytes) => {
    expect(await list(rawTar(members), defaultLimits, pieceBytes)).toEqual([
      ['a', 'x'.repeat(2_000)],
      ['folder/', ''],
      ['empty', ''],
      ['b', 'y'.repeat(512)],
    ])
  })

  it('content that is not read is skipped', async () => {
    const names: string[] = []
    for await (const { name, content } of readTar(Readable.from([rawTar(members)]), defaultLimits)) {
      names.push(name)
      if (name === 'a') await content.next()
    }
    expect(names).toEqual(['a', 'folder/', 'empty', 'b'])
  })

  it('a long name comes from GNU tar or from a record of pax', async () => {
    const name = `${'d'.repeat(120)}/ü`
    expect(
      await list(rawTar([{ name: '././@LongLink', kind: 'L', content: `${name}\0` }, { name: 'd' }])),
    ).toEqual([[name, '']])
    expect(await list(rawTar([record('path', name), { name: 'd' }]))).toEqual([[name, '']])
  })
})

describe('a size of 8 GiB and more', () => {
  it('a bundle may have it in base 256', async () => {
    expect(await firstMember(largeHeader(large))).toEqual({ name: 'large', kind: 'file', sizeBytes: large })
  })

  it.each([0, 1])(
    'a bundle may have it in a record of pax, with %i as the size in the header',
    async (size) => {
      const header = rawMember({ name: 'large', size }).subarray(0, 512)
      const bytes = Buffer.concat([rawMember(record('size', String(large))), header])
      expect(await firstMember(bytes)).toEqual({ name: 'large', kind: 'file', sizeBytes: large })
    },
  )

  it('a bundle may have it in both, if they are equal', async () => {
    const records = rawMember(record('size', String(large)))
    const bytes = Buffer.concat([records, largeHeader(large)])
    expect(await firstMember(bytes)).toMatchObject({ sizeBytes: large })
    const differing = Buffer.concat([records, largeHeader(large + 512)])
    expect(await reasonOf(firstMember(differing))).toBe('RecordInvalid')
  })

  it('a definition may not have it in base 256 or in a record', async () => {
    expect(await reasonOf(firstMember(largeHeader(large), defaultLimits))).toBe('RecordInvalid')
    const bytes = rawTar([record('size', '5'), { name: 'x', content: '12345' }])
    expect(await reasonOf(firstMember(bytes, defaultLimits))).toBe('RecordInvalid')
  })

  it('a size beyond the limit is refused', async () => {
    expect(await reasonOf(firstMember(largeHeader(2 * 2 ** 40)))).toBe('MemberTooLarge')
    const limits = { ...bundleArchiveLimits, memberBytes: 2 ** 33 }
    expect(await reasonOf(firstMember(largeHeader(large), limits))).toBe('MemberTooLarge')
  })

  it.each([
    ['negative', Buffer.from('ff'.repeat(12), 'hex')],
    ['of 2^80', Buffer.from('800100000000000000000000', 'hex')],
    ['of 2^48', Buffer.from('800000000001000000000000', 'hex')],
  ])('a size in base 256 that is %s is refused', async (_what, field) => {
    const header = largeHeader(large)
    field.copy(header, 124)
    expect(await reasonOf(firstMember(withSum(header)))).toBe('RecordInvalid')
  })
})

describe('what readers understand in different ways', () => {
  it.each<[string, RawMember[]]>([
    [
      'a record replaces a size that the header holds',
      [record('size', '0'), { name: 'x', content: 'hidden' }],
    ],
    [
      'a record makes a small member large',
      [record('size', '1024'), { name: 'x', content: 'y'.repeat(512) }, { name: 'z' }],
    ],
    ['a size is no number', [record('size', '0x200'), { name: 'x' }]],
    ['a size is negative', [record('size', '-1'), { name: 'x' }]],
    [
      'a record has the size twice',
      [recordsOf(paxRecord('size', '0'), paxRecord('size', '0')), { name: 'x' }],
    ],
    [
      'a record has the name twice',
      [recordsOf(paxRecord('path', 'a'), paxRecord('path', 'b')), { name: 'x' }],
    ],
    ['two headers of records', [record('path', 'a'), record('comment', 'b'), { name: 'x' }]],
    ['two long names', [record('path', 'a'), { name: 'L', kind: 'L', content: 'b\0' }, { name: 'x' }]],
    [
      'a global header between record and member',
      [record('path', 'a'), { name: 'g', kind: 'g', content: paxRecord('comment', 'b') }, { name: 'x' }],
    ],
    ['a global size', [{ name: 'g', kind: 'g', content: paxRecord('size', '5') }, { name: 'x' }]],
    ['records without a member', [{ name: 'x' }, record('path', 'a')]],
  ])('%s: it is refused', async (_what, members) => {
    expect(await reasonOf(list(rawTar(members)))).toBe('RecordInvalid')
  })

  it('a folder with the size of a file is refused, also by a record', async () => {
    expect(await reasonOf(list(rawTar([{ name: 'f', kind: '5', content: 'x' }])))).toBe('MemberKind')
    const bytes = rawTar([
      { name: 'L', kind: 'L', content: 'folder/\0' },
      { name: 'f', content: 'x' },
    ])
    expect(await reasonOf(list(bytes))).toBe('MemberKind')
    const records = rawMember(record('size', String(large)))
    expect(await reasonOf(firstMember(Buffer.concat([records, rawMember({ name: 'f/' })])))).toBe(
      'MemberKind',
    )
  })

  it('one block of zeros between members is refused', async () => {
    const bytes = Buffer.concat([rawMember({ name: 'a' }), Buffer.alloc(512), rawMember({ name: 'b' })])
    expect(await reasonOf(list(bytes))).toBe('Damaged')
  })

  it('zeros may follow the end, other bytes may not', async () => {
    const whole = rawTar([{ name: 'a' }])
    expect(await list(Buffer.concat([whole, Buffer.alloc(100_000)]))).toHaveLength(1)
    for (const more of [Buffer.from('x'), Buffer.concat([Buffer.alloc(5_000), Buffer.from([1])])])
      expect(await reasonOf(list(Buffer.concat([whole, more])))).toBe('TrailingBytes')
  })
})

describe('the compression', () => {
  const tar = rawTar([{ name: 'a', content: 'content' }])
  const plain = async (bytes: Buffer, limits = bundleArchiveLimits) => {
    const pieces = function* () {
      for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100)
    }
    const parts: Buffer[] = []
    for await (const piece of decompress(Readable.from(pieces()), limits)) parts.push(piece)
    return Buffer.concat(parts)
  }

  it('a bundle is a plain tar, gzip or Zstandard; its first bytes decide', async () => {
    for (const bytes of [tar, gzipSync(tar), zstdCompressSync(tar)])
      expect((await plain(bytes)).equals(tar)).toBe(true)
  })

  it('a definition is not a plain tar', async () => {
    await expect(plain(tar, defaultLimits)).rejects.toThrow(
      'the archive is neither gzip nor Zstandard; a definition is a .tgz or a .tar.zst',
    )
  })

  it.each([
    ['zeros', Buffer.alloc(10_000)],
    ['text', Buffer.from('something else'.repeat(100))],
    ['the first bytes of a tar', tar.subarray(0, 261)],
  ])('%s is no bundle', async (_what, bytes) => {
    await expect(plain(bytes)).rejects.toThrow(
      'the archive is neither tar, gzip nor Zstandard; a bundle is a .tar, a .tar.gz or a .tar.zst',
    )
  })

  it('an empty file is named as such', async () => {
    await expect(plain(Buffer.alloc(0))).rejects.toThrow('the archive is empty')
  })

  it('a plain tar is bounded too', async () => {
    const limits = { ...bundleArchiveLimits, unpackedBytes: 1_000 }
    expect(await reasonOf(plain(tar, limits))).toBe('TooLarge')
  })
})
