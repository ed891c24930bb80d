import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { execa } from 'execa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { paxRecord, rawMember } from '../support/tar-bytes.ts'

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
      join(import.meta.dirname, '../support/bomb.ts'),
      join(home, 'staging'),
      JSON.stringify(limits),
    ],
    { input: bytes, timeout: 60_000 },
  )
  return JSON.parse(stdout) as { reason: string; ms: number; grownMiB: number; isLeft: boolean }
}

const block = Buffer.alloc(1_048_576)
function* zeros(mebibytes: number): Generator<Buffer> {
  for (let at = 0; at < mebibytes; at += 1) yield block
}

/** A file of zeros, 7 GiB as its header says it. */
function* fileOfZeros(mebibytes: number): Generator<Buffer> {
  yield rawMember({ name: 'zeros', size: mebibytes * 2 ** 20 }).subarray(0, 512)
  yield* zeros(mebibytes)
}

function* members(count: number, member: (index: number) => Buffer): Generator<Buffer> {
  for (let index = 0; index < count; index += 1) yield member(index)
}

describe('in bounded time and memory', () => {
  it.each(['gzip', 'zstd'] as const)('gigabytes of zeros in little %s are refused', async (how) => {
    const bytes = await compress(fileOfZeros(1_024), how)
    expect(bytes.length).toBeLessThan(1_100_000)
    const ended = await explode(bytes)
    expect(ended).toMatchObject({ reason: 'RatioTooHigh', isLeft: false })
    expect(ended.grownMiB).toBeLessThan(100)
    expect(ended.ms).toBeLessThan(15_000)
  })

  it('10 GB of zeros in 10 KB of Zstandard frames are refused', async () => {
    // One frame of zeros after the other: a header of a file, and frames that are all the same.
    const frame = await compress(zeros(64), 'zstd')
    const header = await compress(
      [rawMember({ name: 'zeros', size: 2 ** 31 - 512 }).subarray(0, 512)],
      'zstd',
    )
    const bytes = Buffer.concat([header, ...Array.from({ length: 150 }, () => frame)])
    expect((await explode(bytes)).reason).toBe('RatioTooHigh')
    const patient = await explode(bytes, { ratio: 1e9, unpackedBytes: 300 * 2 ** 20 })
    expect(patient).toMatchObject({ reason: 'TooLarge', isLeft: false })
    expect(patient.grownMiB).toBeLessThan(100)
  })

  it('a million members are refused', async () => {
    const names = members(1_000_000, (index) => rawMember({ name: `m${index}` }))
    const bytes = await compress(names, 'zstd')
    const ended = await explode(bytes, { members: 2_000 })
    expect(ended).toMatchObject({ reason: 'TooManyMembers', isLeft: false })
    // Without that limit the ratio is another.
    expect((await explode(bytes.subarray(0, 100_000), { members: 2_000 })).reason).toBe('TooManyMembers')
  }, 60_000)

  it('folders in folders in folders are refused', async () => {
    const deep = (index: number) => rawMember({ name: `${'d/'.repeat(30)}${index}` })
    const ended = await explode(await compress(members(100, deep), 'zstd'), { members: 100 })
    expect(ended).toMatchObject({ reason: 'TooManyMembers', isLeft: false })
  })

  it('records without a member are no way to fill the memory', async () => {
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
