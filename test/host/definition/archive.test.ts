import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ExtractOptions } from '../../../src/archive/extract.ts'
import { extractDefinition } from '../../../src/definition/read/read-definition.ts'
import type { Reason } from '../../../src/archive/refusal.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import {
  compressions,
  paxRecord,
  rawMember,
  rawTar,
  signedMembers,
  type RawMember,
} from '../../support/tar-bytes.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'definition-'))
})
afterEach(() => rmSync(home, { recursive: true }))

/** In pieces of a size that matches no boundary of tar. */
function* pieces(bytes: Buffer, size = 997): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const extract = (bytes: Buffer, options: Partial<ExtractOptions> = {}) =>
  extractDefinition({ source: Readable.from(pieces(bytes)), folder: join(home, 'staging'), ...options })

async function refusal(bytes: Buffer, options: Partial<ExtractOptions> = {}) {
  const error: unknown = await extract(bytes, options).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error, String((error as Error | undefined)?.stack)).toBeInstanceOf(AppError)
  // Nothing is left, neither in the staging folder nor beside it.
  expect(readdirSync(home)).toEqual([])
  const { code, message, details, status } = error as AppError
  expect(status).toBe(400)
  return { code, message, reason: details?.reason as Reason, member: details?.member }
}

const files = { 'profiles/u1/profile.json': '{}', 'packs/a-1/pack.json': '{"a":1}', 'packs/a-1/empty': '' }
const good = signedMembers(files)

describe.each(Object.entries(compressions))('an archive in %s', (_name, compress) => {
  it('an archive is unpacked, files 0600 and folders 0700, with the sum of each', async () => {
    const { members, head, folder } = await extract(compress(rawTar(good)))
    expect([...members.keys()].sort()).toEqual([...Object.keys(files), 'definition.yaml'].sort())
    expect(members.get('packs/a-1/pack.json')).toEqual({
      sizeBytes: 7,
      sha256: '015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862',
      isKept: true,
    })
    expect(head).toMatchObject({ name: 'factory', version: '1.0.0', formatVersion: 1 })
    for (const [name, content] of Object.entries(files)) {
      expect(readFileSync(join(folder, name), 'utf8')).toBe(content)
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
    }
    for (const name of ['', 'packs', 'packs/a-1'])
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o700)
  })

  it('an archive that is truncated anywhere is refused and leaves nothing', async () => {
    const bytes = compress(rawTar(good))
    for (let length = 0; length < bytes.length; length += 7) {
      const { code } = await refusal(bytes.subarray(0, length))
      expect(code).toBe('ArchiveDamaged')
    }
    expect((await refusal(bytes.subarray(0, bytes.length - 1))).reason).toBe('Truncated')
  })

  it('an archive with one flipped bit is refused, or has the same content', async () => {
    const bytes = compress(rawTar(good))
    for (let at = 0; at < bytes.length * 8; at += 11) {
      const altered = Buffer.from(bytes)
      altered[at >> 3] = (altered[at >> 3] ?? 0) ^ (1 << (at & 7))
      const ended: unknown = await extract(altered).catch((error: unknown) => error)
      if (ended instanceof Error) {
        expect(ended, `bit ${at}: ${String(ended.stack)}`).toBeInstanceOf(AppError)
        expect(readdirSync(home)).toEqual([])
      } else {
        // The header of gzip contains a time and an operating system, which do not matter.
        for (const [name, content] of Object.entries(files))
          expect(readFileSync(join(home, 'staging', name), 'utf8')).toBe(content)
        rmSync(join(home, 'staging'), { recursive: true })
      }
    }
  })

  it.each([
    ['bytes', Buffer.from('something else')],
    ['one byte', Buffer.from('x')],
    ['zeros', Buffer.alloc(100)],
    ['a megabyte of zeros', Buffer.alloc(1_000_000)],
  ])('an archive with %s after its end is refused', async (_what, more) => {
    const { code } = await refusal(Buffer.concat([compress(rawTar(good)), more]))
    expect(code).toBe('ArchiveDamaged')
  })

  it('an archive with bytes after the end of the tar is refused', async () => {
    for (const more of [Buffer.from('more'), rawMember({ name: 'late', content: 'late' })])
      expect((await refusal(compress(Buffer.concat([rawTar(good), more])))).code).toBe('ArchiveDamaged')
  })

  it('an archive without the end of the tar is refused', async () => {
    for (const missing of [1, 512, 1_024])
      expect((await refusal(compress(rawTar(good).subarray(0, -missing)))).reason).toBe('Truncated')
  })
})

const one = (member: RawMember) => compressions.zstd(rawTar([...good, member]))
const long = (name: string | Buffer, key = 'path'): RawMember => ({
  name: 'PaxHeaders/x',
  kind: 'x',
  content: paxRecord(key, name),
})

describe('a member is refused', () => {
  it.each<[string, RawMember, Reason, string?]>([
    ['above the top', { name: '../evil' }, 'MemberOutside', '../evil'],
    ['above the top in the middle', { name: 'packs/../../evil' }, 'MemberOutside'],
    ['above the top, as a folder', { name: 'a/..', kind: '5' }, 'MemberOutside'],
    ['with an absolute path', { name: '/etc/passwd' }, 'MemberOutside', '/etc/passwd'],
    ['with the path of a drive', { name: 'C:/evil' }, 'MemberOutside'],
    ['with backslashes', { name: '..\\evil' }, 'MemberName'],
    ['that is a symbolic link', { name: 'link', kind: '2', linkName: '/etc/passwd' }, 'MemberKind', 'link'],
    ['that is a hard link', { name: 'link', kind: '1', linkName: 'definition.yaml' }, 'MemberKind', 'link'],
    ['that is a character device', { name: 'null', kind: '3' }, 'MemberKind'],
    ['that is a block device', { name: 'sda', kind: '4' }, 'MemberKind'],
    ['that is a pipe', { name: 'pipe', kind: '6' }, 'MemberKind'],
    ['that is sparse', { name: 'sparse', kind: 'S' }, 'MemberKind'],
    ['of an unknown kind', { name: 'what', kind: 'Z' }, 'MemberKind'],
    ['with a long link target', { name: '././@LongLink', kind: 'K', content: '/etc/passwd\0' }, 'MemberKind'],
    ['that is setuid', { name: 'su', mode: 0o4755 }, 'MemberMode', 'su'],
    ['that is setgid', { name: 'sg', mode: 0o2755 }, 'MemberMode', 'sg'],
    ['that is a setgid folder', { name: 'sg', kind: '5', mode: 0o2755 }, 'MemberMode'],
    ['that occurs twice', { name: 'packs/a-1/pack.json' }, 'MemberTwice', 'packs/a-1/pack.json'],
    ['that differs by case only', { name: 'packs/a-1/PACK.json' }, 'MemberTwice'],
    ['in a folder that differs by case only', { name: 'Packs/a-1/x' }, 'MemberTwice'],
    ['that is a file with the name of a folder', { name: 'packs' }, 'MemberTwice'],
    ['inside a file', { name: 'packs/a-1/pack.json/x' }, 'MemberTwice'],
    ['that is a folder with the name of a file', { name: 'packs/a-1/pack.json', kind: '5' }, 'MemberTwice'],
    ['whose name is not UTF-8', { name: Buffer.from([0x61, 0xff, 0x62]) }, 'MemberName'],
    ['whose name is truncated UTF-8', { name: Buffer.from([0x61, 0xc3]) }, 'MemberName'],
    ['with a control character', { name: 'a\u001b[31m' }, 'MemberName', 'a\\u001b[31m'],
    ['with a newline', { name: 'a\nb' }, 'MemberName'],
    ['with a mark that reverses text', { name: 'a\u202egpj.exe' }, 'MemberName', 'a\\u202egpj.exe'],
    ['without a name', { name: '' }, 'MemberName'],
    ['with an empty part', { name: 'a//b' }, 'MemberName'],
    ['with a dot as a part', { name: 'a/./b' }, 'MemberName'],
    ['that is a folder with content', { name: 'folder', kind: '5', content: 'x' }, 'MemberKind'],
    ['that is a folder with content, the old way', { name: 'folder/', content: 'x' }, 'MemberKind'],
    ['that has no sum', { name: 'packs/a-1/more' }, 'MemberUnlisted', 'packs/a-1/more'],
    ['whose size is in base 256', { name: 'big', size: Number.NaN }, 'RecordInvalid'],
  ])('a member %s is refused', async (_what, member, reason, name) => {
    const found = await refusal(one(member))
    expect(found.reason, found.message).toBe(reason)
    if (name !== undefined) expect(found.member).toBe(name)
  })

  it.each<[string, RawMember[], Reason]>([
    [
      'with a long path above the top',
      [long(`${'a/'.repeat(60)}${'../'.repeat(61)}evil`), { name: 'x' }],
      'MemberOutside',
    ],
    ['with a record that leads above the top', [long('../evil'), { name: 'x' }], 'MemberOutside'],
    ['with a NUL in a record', [long('a\0b'), { name: 'x' }], 'MemberName'],
    ['with a record that is not UTF-8', [long(Buffer.from([0xff, 0xfe])), { name: 'x' }], 'MemberName'],
    ['with 4,096 bytes of name', [long('n'.repeat(4_096)), { name: 'x' }], 'NameTooLong'],
    ['with 300 bytes between slashes', [long('n'.repeat(300)), { name: 'x' }], 'NameTooLong'],
    ['with 40 folders', [long('n/'.repeat(40)), { name: 'x' }], 'NameTooLong'],
    [
      'with a GNU long name of 4,096 bytes',
      [{ name: '././@LongLink', kind: 'L', content: 'n'.repeat(4_096) }, { name: 'x' }],
      'NameTooLong',
    ],
    [
      'with a GNU long name above the top',
      [{ name: '././@LongLink', kind: 'L', content: '../evil\0' }, { name: 'x' }],
      'MemberOutside',
    ],
    [
      'with a GNU long name that is not UTF-8',
      [{ name: '././@LongLink', kind: 'L', content: Buffer.from([0xff, 0]) }, { name: 'x' }],
      'MemberName',
    ],
    [
      'with a size in a record',
      [long('0', 'size'), { name: 'x', content: 'y'.repeat(512) }],
      'RecordInvalid',
    ],
    ['with a link in a record', [long('/etc', 'linkpath'), { name: 'x' }], 'RecordInvalid'],
    ['with a sparse map in a record', [long('x', 'GNU.sparse.name'), { name: 'x' }], 'RecordInvalid'],
    [
      'with a global record for names',
      [{ name: 'g', kind: 'g', content: paxRecord('path', 'x') }, { name: 'x' }],
      'RecordInvalid',
    ],
    [
      'with malformed records',
      [{ name: 'x', kind: 'x', content: 'nonsense' }, { name: 'x' }],
      'RecordInvalid',
    ],
    [
      'with a record whose length has 16,001 digits',
      [{ name: 'x', kind: 'x', content: `${'0'.repeat(16_000)}1 a=b\n` }, { name: 'x' }],
      'RecordInvalid',
    ],
    [
      'with a record that is longer than its block',
      [{ name: 'x', kind: 'x', content: '999 a=b\n' }, { name: 'x' }],
      'RecordInvalid',
    ],
    [
      'with 4 MiB of records',
      [{ name: 'x', kind: 'x', content: Buffer.alloc(4_194_304, '7 a=bc\n') }, { name: 'x' }],
      'NameTooLong',
    ],
    ['with empty records', [{ name: 'x', kind: 'x' }, { name: 'x' }], 'RecordInvalid'],
    [
      'that differs by composition only',
      [{ name: 'packs/é' }, { name: 'packs/é'.normalize('NFD') }],
      'MemberTwice',
    ],
    ['that differs by a sharp s only', [{ name: 'strasse' }, { name: 'straße' }], 'MemberTwice'],
  ])('a member %s is refused', async (_what, more, reason) => {
    const found = await refusal(compressions.gzip(rawTar([...good, ...more])))
    expect(found.reason, found.message).toBe(reason)
  })
})
