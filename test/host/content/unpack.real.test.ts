import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bundleArchiveLimits } from '../../../src/archive/limits.ts'
import { readTar } from '../../../src/archive/tar-reader.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import {
  createContentHome,
  killChildren,
  layoutMembers,
  listWhole,
  writeLayout,
  type ContentHome,
} from '../../support/content-program.ts'
import { rawMember, rawTar, sha256, type RawMember } from '../../support/tar-bytes.ts'
import { noise } from '../../support/random.ts'

let home: ContentHome
let upload: string
beforeEach(() => {
  home = createContentHome(tmpdir())
  upload = home.makeUpload()
})
afterEach(async () => {
  await home.content.stop()
  home.remove()
})

/** In pieces of a size that matches no boundary. */
function* pieces(bytes: Buffer, size = 9_973): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** A frame of Zstandard with that many zeros, RFC 8878 3.1.1.2: blocks of 128 KiB in four bytes each. */
function zeroFrame(sizeBytes: number): Buffer {
  const block = (isLast: boolean) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUIntLE((131_072 << 3) | (1 << 1) | (isLast ? 1 : 0), 0, 3)
    return bytes
  }
  const blocks = Buffer.alloc((sizeBytes / 131_072 - 1) * 4, block(false))
  return Buffer.concat([Buffer.from('28b52ffd0058', 'hex'), blocks, block(true)])
}

/** The output of a shell command. */
const output = (command: string) => {
  const child = spawn('bash', ['-o', 'pipefail', '-c', command], {
    cwd: home.home,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return child.stdout
}

const indexText = '{"schemaVersion":2,"manifests":[]}'

async function refusal(archive: Buffer | Iterable<Buffer>, order: object = {}) {
  const bytes = Buffer.isBuffer(archive) ? pieces(archive) : archive
  const error: unknown = await home.unpack(upload, bytes, order).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error, String((error as Error | undefined)?.stack)).toBeInstanceOf(AppError)
  // Whole blobs may stay, nothing else.
  listWhole(join(upload, 'blobs'))
  expect(readdirSync(join(upload, 'parts'))).toEqual([])
  const { code, message, details, status } = error as AppError
  return { code, message, status, reason: details?.reason, member: details?.member }
}

describe('a bundle made by tar', () => {
  const contents = [noise(3_000_000, 1), noise(70_000, 2), 'small', '']

  it.each([
    ['tar', 'tar -cf - --format=gnu -C layout oci-layout index.json blobs'],
    ['blobs first and a leading ./', 'tar -cf - --format=pax -C layout ./blobs ./index.json ./oci-layout'],
    ['gzip', 'tar -cf - --format=ustar -C layout blobs oci-layout index.json | gzip'],
    ['zstd', 'tar -cf - -C layout . | zstd -q'],
    ['zstd in frames', "tar -cf - -C layout . | split -b 700k --filter='zstd -q'"],
    ['pzstd', 'tar -cf - -C layout . | pzstd -q -p 2'],
    [
      'two files of zstd one after the other',
      'tar -cf t -C layout . && head -c 999999 t | zstd -q && tail -c +1000000 t | zstd -q',
    ],
    ['zstd with a window of 128 MiB', 'tar -cf - -C layout blobs oci-layout index.json | zstd -q --long=27'],
  ])('%s: index and blobs are unpacked', async (_what, command) => {
    writeLayout(join(home.home, 'layout'), contents)
    const unpacked = await home.unpack(upload, output(command))
    expect(unpacked).toEqual({
      indexDigest: `sha256:${sha256(indexText)}`,
      blobCount: 4,
      sizeBytes: 3_070_005,
      writtenBytes: 3_070_005,
    })
    expect(readdirSync(upload).sort()).toEqual(['blobs', 'index.json', 'parts'])
    expect(readFileSync(join(upload, 'index.json'), 'utf8')).toBe(indexText)
    expect(listWhole(join(upload, 'blobs'))).toEqual(contents.map((content) => sha256(content)).sort())
    expect(readdirSync(join(upload, 'parts'))).toEqual([])
    for (const name of readdirSync(join(upload, 'blobs')))
      expect(statSync(join(upload, 'blobs', name)).mode & 0o777).toBe(0o600)
  })

  it('a member of 9 GiB, as GNU tar writes it, is passed over', async () => {
    writeLayout(join(home.home, 'layout'), contents)
    const command = 'truncate -s 9G large && tar -cf - --format=gnu large | head -c 512 | zstd -q'
    const header = await buffer(output(`${command}; true`))
    const rest = await buffer(output('tar -cf - -C layout blobs oci-layout index.json | zstd -q'))
    const archive = Buffer.concat([header, zeroFrame(9 * 2 ** 30), rest])
    const unpacked = await home.unpack(upload, pieces(archive, 65_536), { limits: { ratio: 1e6 } })
    expect(unpacked).toMatchObject({ blobCount: 4 })
    expect(readdirSync(upload).sort()).toEqual(['blobs', 'index.json', 'parts'])
  })

  it.each(['gnu', 'pax'])(
    'the size of a member of 9 GiB is read as tar writes it in the format %s',
    async (format) => {
      const command = `truncate -s 9G large && tar -cf - --format=${format} large | head -c 2048; true`
      for await (const { name, sizeBytes } of readTar(output(command), bundleArchiveLimits)) {
        expect({ name, sizeBytes }).toEqual({ name: 'large', sizeBytes: 9 * 2 ** 30 })
        break
      }
    },
  )

  it('files that are not part of a layout are not written', async () => {
    writeLayout(join(home.home, 'layout'), contents)
    for (const name of ['manifest.json', 'repositories', 'README'])
      writeFileSync(join(home.home, 'layout', name), '[')
    mkdirSync(join(home.home, 'layout/more'))
    writeFileSync(join(home.home, 'layout/more/index.json'), '{')
    await home.unpack(upload, output('tar -cf - -C layout .'))
    expect(readdirSync(upload).sort()).toEqual(['blobs', 'index.json', 'parts'])
    expect(readFileSync(join(upload, 'index.json'), 'utf8')).toBe(indexText)
  })
})

describe('a blob that the store has', () => {
  it('is linked and not written', async () => {
    const [first, second] = [sha256('one'), sha256('two')]
    writeFileSync(join(home.blobs, first), 'one')
    const unpacked = await home.unpack(upload, pieces(rawTar(layoutMembers())))
    expect(unpacked).toMatchObject({ blobCount: 2, sizeBytes: 6, writtenBytes: 3 })
    expect(listWhole(join(upload, 'blobs'))).toEqual([first, second].sort())
    expect(statSync(join(upload, 'blobs', first)).ino).toBe(statSync(join(home.blobs, first)).ino)
    expect(statSync(join(upload, 'blobs', second)).nlink).toBe(1)
  })

  it('is compared with its name all the same', async () => {
    writeFileSync(join(home.blobs, sha256('one')), 'one')
    const forged = { name: `blobs/sha256/${sha256('one')}`, content: 'two' }
    expect(await refusal(rawTar([forged, ...layoutMembers([])]))).toMatchObject({ reason: 'BlobDiffers' })
  })
})

describe('a refusal names the member and the reason', () => {
  const blob = (name: string, content = 'one'): RawMember[] => [{ name, content }, ...layoutMembers([])]

  it.each<[string, RawMember[], object]>([
    [
      'a blob with other content',
      blob(`blobs/sha256/${sha256('two')}`),
      {
        code: 'ArchiveDamaged',
        reason: 'BlobDiffers',
        message: `blobs/sha256/${sha256('two')} has a content with the digest sha256:${sha256('one')}; copy the archive again, or build it again`,
      },
    ],
    [
      'a blob twice',
      [...layoutMembers(), ...blob(`blobs/sha256/${sha256('one')}`)],
      { reason: 'MemberTwice' },
    ],
    ['SHA-512', blob(`blobs/sha512/${'0'.repeat(128)}`), { reason: 'BlobName' }],
    ['upper case', blob(`blobs/sha256/${sha256('one').toUpperCase()}`), { reason: 'BlobName' }],
    ['another name', blob('blobs/sha256/README'), { reason: 'BlobName' }],
    ['a file below a blob', blob(`blobs/sha256/${sha256('one')}/x`), { reason: 'BlobName' }],
    ['a path above the top', blob(`blobs/sha256/../../${sha256('one')}`), { reason: 'MemberOutside' }],
    ['a control character', blob('a\u001b[31m'), { reason: 'MemberName' }],
    [
      'a link',
      [...layoutMembers(), { name: 'latest', kind: '2', linkName: 'index.json' }],
      {
        reason: 'MemberKind',
        message: 'latest is a symbolic link; a bundle holds regular files and folders only',
      },
    ],
    [
      'index.json twice',
      [...layoutMembers(), { name: 'index.json', content: '{}' }],
      { reason: 'MemberTwice' },
    ],
  ])('%s', async (_what, members, expected) => {
    expect(await refusal(rawTar(members))).toMatchObject({ status: 400, ...expected })
  })

  it('an index.json above 16 MiB is refused by its header', async () => {
    const header = rawMember({ name: 'index.json', size: 16 * 2 ** 20 + 1 }).subarray(0, 512)
    expect(await refusal(Buffer.concat([header, Buffer.alloc(2_000_000)]))).toMatchObject({
      code: 'ArchiveTooLarge',
      message: 'index.json has 16777217 bytes; 16777216 are allowed',
    })
  })

  it.each<[string, RawMember[]]>([
    [
      'an old archive of docker save',
      [
        { name: `${'a'.repeat(64)}/layer.tar`, content: 'layer' },
        { name: `${'a'.repeat(64)}.json`, content: '{}' },
        { name: 'manifest.json', content: '[]' },
      ],
    ],
    [
      'an old archive of docker save with links',
      [
        { name: `${'a'.repeat(64)}/layer.tar`, content: 'layer' },
        { name: `${'b'.repeat(64)}/layer.tar`, kind: '2', linkName: `../${'a'.repeat(64)}/layer.tar` },
      ],
    ],
    ['an archive of anything', [{ name: 'README', content: 'text' }]],
    ['an empty archive', []],
    ['a layout without its mark', layoutMembers().filter(({ name }) => name !== 'oci-layout')],
    ['a layout without index.json', layoutMembers().filter(({ name }) => name !== 'index.json')],
    [
      'a layout in a folder',
      layoutMembers().map((member) => ({ ...member, name: `layout/${String(member.name)}` })),
    ],
  ])('%s is refused with the command that makes a bundle of it', async (_what, members) => {
    const found = await refusal(zstdCompressSync(rawTar(members)))
    expect(found).toMatchObject({ code: 'ArchiveInvalid', reason: 'NotALayout' })
    expect(found.message).toContain('edgehostctl content build --image-archive FILE --output BUNDLE.tar.zst')
  })

  it.each([
    ['tar', (bytes: Buffer) => bytes],
    ['gzip', (bytes: Buffer) => gzipSync(bytes)],
    ['zstd', (bytes: Buffer) => zstdCompressSync(bytes)],
  ])('an archive in %s that is cut off, or has bytes after its end, is refused', async (_what, compress) => {
    const whole = compress(rawTar(layoutMembers([noise(200_000, 3)])))
    for (const length of [300, 700, 100_000, whole.length - 1])
      expect(await refusal(whole.subarray(0, length))).toMatchObject({
        code: 'ArchiveDamaged',
        reason: 'Truncated',
      })
    expect(await refusal(Buffer.concat([whole, Buffer.from('more')]))).toMatchObject({
      code: 'ArchiveDamaged',
    })
  })

  it('another compression is refused', async () => {
    const bytes = Buffer.concat([Buffer.from('fd377a585a0000', 'hex'), Buffer.alloc(1_000)])
    expect((await refusal(bytes)).message).toBe(
      'the archive is neither tar, gzip nor Zstandard; a bundle is a .tar, a .tar.gz or a .tar.zst',
    )
  })
})

describe('in bounds', () => {
  /** Empty files: one header after the other, each with a name and a sum of its own. */
  function* manyMembers(count: number): Generator<Buffer> {
    const template = rawMember({ name: 'm0000000' })
    const base = template.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0) - 7 * 48
    for (let from = 0; from < count; from += 1_000) {
      const batch = Buffer.alloc(512_000, template)
      for (let index = 0; index < 1_000; index += 1) {
        const digits = String(from + index).padStart(7, '0')
        let sum = base
        for (let at = 0; at < 7; at += 1) sum += digits.charCodeAt(at)
        batch.write(digits, index * 512 + 1, 'latin1')
        batch.write(sum.toString(8).padStart(6, '0'), index * 512 + 148, 'latin1')
      }
      yield batch
    }
  }

  it('more members than allowed are refused', async () => {
    const limits = { members: 30_000 }
    expect(limits.members).toBeLessThan(bundleArchiveLimits.members)
    expect(await refusal(manyMembers(40_000), { limits })).toMatchObject({ reason: 'TooManyMembers' })
  })

  it('an archive without an end is refused when it has used the disk up to its reserve', async () => {
    const block = Buffer.alloc(1_048_576, 1)
    function* endless() {
      const header = rawMember({ name: `blobs/sha256/${'0'.repeat(64)}`, size: 8 * 2 ** 30 - 512 })
      yield header.subarray(0, 512)
      for (;;) yield block
    }
    const { bavail, bsize } = statfsSync(home.home)
    const free = bavail * bsize
    const found = await refusal(endless(), { reserveBytes: free - 100 * 2 ** 20 })
    expect(found).toMatchObject({ code: 'StorageFull', status: 507 })
  })
})

describe('a program that is ended', () => {
  const whole = () =>
    rawTar(layoutMembers(Array.from({ length: 20 }, (_, index) => noise(300_000 + index, index))))

  it('by kill -9 at any moment: it leaves whole blobs only, and may be run again', async () => {
    const bytes = whole()
    for (let round = 1; round <= 12; round += 1) {
      const again = home.makeUpload(`upload-${round}`)
      const unpacking = home.content.unpack({ upload: again, blobs: home.blobs, reserveBytes: 0 })
      let sent = 0
      const killAt = (bytes.length * round) / 13
      for (const piece of pieces(bytes, 65_536)) {
        await unpacking.write(piece)
        sent += piece.length
        if (sent < killAt) continue
        killChildren()
        break
      }
      await expect(unpacking.result).rejects.toThrow('was killed')
      // The writer does not wait for a program that is gone.
      for (const piece of pieces(bytes, 1_000_000)) await unpacking.write(piece)
      await unpacking.end()
      listWhole(join(again, 'blobs'))
      const unpacked = await home.unpack(again, pieces(bytes))
      expect(unpacked).toMatchObject({ blobCount: 20 })
      expect(listWhole(join(again, 'blobs'))).toHaveLength(20)
      expect(readdirSync(join(again, 'parts'))).toEqual([])
    }
  })

  it('by its caller: the result is the given reason', async () => {
    const unpacking = home.content.unpack({ upload, blobs: home.blobs, reserveBytes: 0 })
    await unpacking.write(whole().subarray(0, 1_000_000))
    const reason = new AppError({ code: 'Gone', status: 400, meaning: '', action: '' }, 'the client is gone')
    await unpacking.cancel(reason)
    await expect(unpacking.result).rejects.toBe(reason)
  })

  it('by the stop of the daemon: the result and later ones are NotReady', async () => {
    const unpacking = home.content.unpack({ upload, blobs: home.blobs, reserveBytes: 0 })
    await unpacking.write(whole().subarray(0, 1_000_000))
    await home.content.stop()
    await expect(unpacking.result).rejects.toMatchObject({ code: 'NotReady' })
    const later = home.content.verify({ blobs: home.blobs, digests: [] })
    await expect(later).rejects.toMatchObject({ code: 'NotReady' })
  })
})
