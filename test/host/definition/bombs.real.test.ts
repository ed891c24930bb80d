import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { execa } from 'execa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { paxRecord, rawMember } from '../../support/tar-bytes.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'definition-bomb-'))
})
afterEach(() => rmSync(home, { recursive: true }))

async function compress(chunks: Iterable<Buffer>, how: 'gzip' | 'zstd', windowLog = 21): Promise<Buffer> {
  const compressor =
    how === 'gzip'
      ? createGzip({ level: 9 })
      : createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: windowLog } })
  const parts: Buffer[] = []
  for await (const part of Readable.from(chunks).pipe(compressor)) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

/** Unpacks in a process that has 64 MiB for its objects. */
async function explode(bytes: Buffer, limits: object = {}) {
  const { stdout } = await execa(
    process.execPath,
    [
      '--max-old-space-size=64',
      join(import.meta.dirname, '../../support/bomb.ts'),
      join(home, 'staging'),
      JSON.stringify(limits),
    ],
    { input: bytes, timeout: 60_000 },
  )
  return JSON.parse(stdout) as { reason: string; cpuMs: number; grownMiB: number; isLeft: boolean }
}

const block = Buffer.alloc(1_048_576)
function* zeros(mebibytes: number): Generator<Buffer> {
  for (let at = 0; at < mebibytes; at += 1) yield block
}

/** A file of zeros, with the size in its header. */
function* fileOfZeros(mebibytes: number): Generator<Buffer> {
  yield rawMember({ name: 'zeros', size: mebibytes * 2 ** 20 }).subarray(0, 512)
  yield* zeros(mebibytes)
}

/**
 * The highest compression of Zstandard, RFC 8878 3.1.1.2: blocks of 128 KiB in four bytes, after the header of a file.
 */
function denseZeros(megabytes: number): Buffer {
  const header = rawMember({ name: 'zeros', size: 2 ** 31 - 512 }).subarray(0, 512)
  const blockHeader = (isLast: boolean, kind: 0 | 1, size: number) => {
    const bytes = Buffer.alloc(3)
    bytes.writeUIntLE((size << 3) | (kind << 1) | (isLast ? 1 : 0), 0, 3)
    return bytes
  }
  const repeated = Buffer.concat([blockHeader(false, 1, 131_072), Buffer.from([0])])
  const count = Math.ceil((megabytes * 1e6) / 131_072)
  return Buffer.concat([
    Buffer.from('28b52ffd0058', 'hex'),
    blockHeader(false, 0, 512),
    header,
    Buffer.alloc(repeated.length * count, repeated),
    Buffer.concat([blockHeader(true, 1, 1), Buffer.from([0])]),
  ])
}

/** A million empty files: one header after the other, each with a name and a sum of its own. */
function* manyMembers(): Generator<Buffer> {
  const template = rawMember({ name: 'm000000' })
  const base = template.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0) - 6 * 48
  for (let thousand = 0; thousand < 1_000; thousand += 1) {
    const batch = Buffer.alloc(512_000, template)
    for (let index = 0; index < 1_000; index += 1) {
      const digits = String(thousand * 1_000 + index).padStart(6, '0')
      let sum = base
      for (let at = 0; at < 6; at += 1) sum += digits.charCodeAt(at)
      batch.write(digits, index * 512 + 1, 'latin1')
      batch.write(sum.toString(8).padStart(6, '0'), index * 512 + 148, 'latin1')
    }
    yield batch
  }
}

function* members(count: number, member: (index: number) => Buffer): Generator<Buffer> {
  for (let index = 0; index < count; index += 1) yield member(index)
}

describe('in bounded time and memory', () => {
  it.each(['gzip', 'zstd'] as const)('gigabytes of zeros in a small %s are refused', async (how) => {
    const bytes = await compress(fileOfZeros(1_024), how)
    expect(bytes.length).toBeLessThan(1_100_000)
    const ended = await explode(bytes)
    expect(ended).toMatchObject({ reason: 'RatioTooHigh', isLeft: false })
    expect(ended.grownMiB).toBeLessThan(100)
    expect(ended.cpuMs).toBeLessThan(15_000)
  })

  it('10 GB of zeros in 300 kB are refused, by the ratio and by the size', async () => {
    const bytes = denseZeros(10_000)
    expect((await explode(bytes)).reason).toBe('RatioTooHigh')
    const patient = await explode(bytes, { ratio: 1e9, unpackedBytes: 300 * 2 ** 20 })
    expect(patient).toMatchObject({ reason: 'TooLarge', isLeft: false })
    expect(patient.grownMiB).toBeLessThan(100)
  })

  it('a million members are refused', async () => {
    const ended = await explode(await compress(manyMembers(), 'zstd'), { members: 2_000 })
    expect(ended).toMatchObject({ reason: 'TooManyMembers', isLeft: false })
    expect(ended.grownMiB).toBeLessThan(100)
  })

  it('far more frames than any archive needs are refused', async () => {
    const empty = Buffer.from('28b52ffd2000010000', 'hex')
    const bytes = Buffer.concat(Array.from({ length: 100_000 }, () => empty))
    const ended = await explode(bytes, { frames: 100 })
    expect(ended).toMatchObject({ reason: 'TrailingBytes', isLeft: false })
  })

  it('endlessly nested folders are refused', async () => {
    const deep = (index: number) => rawMember({ name: `${'d/'.repeat(30)}${index}` })
    const ended = await explode(await compress(members(100, deep), 'zstd'), { members: 100 })
    expect(ended).toMatchObject({ reason: 'TooManyMembers', isLeft: false })
  })

  it('endless records without a member are refused and do not fill the memory', async () => {
    const content = paxRecord('comment', 'c'.repeat(16_000))
    const record = rawMember({ name: 'x', kind: 'g', content })
    const ended = await explode(
      await compress(
        members(20_000, () => record),
        'gzip',
      ),
    )
    expect(ended).toMatchObject({ reason: 'RatioTooHigh', isLeft: false })
    expect(ended.grownMiB).toBeLessThan(100)
  })

  it('a window of 128 MiB is refused', async () => {
    const ended = await explode(await compress(fileOfZeros(1), 'zstd', 27))
    expect(ended).toMatchObject({ reason: 'WindowTooLarge', isLeft: false })
  })

  it('a member larger than allowed is refused by its header', async () => {
    const ended = await explode(await compress(fileOfZeros(8), 'zstd'), { memberBytes: 2 ** 20 })
    expect(ended).toMatchObject({ reason: 'MemberTooLarge', isLeft: false })
  })
})
