import { spawnSync } from 'node:child_process'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { decompress } from '../../../src/archive/compression.ts'
import { bundleArchiveLimits, defaultLimits, type ArchiveLimits } from '../../../src/archive/limits.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { noise } from '../../support/random.ts'

/** A skippable frame, RFC 8878 3.1.2. @param kind the last digit of its magic number */
function skippable(content: Buffer, kind = 0): Buffer {
  const header = Buffer.alloc(8)
  header.writeUInt32LE(0x184d2a50 + kind, 0)
  header.writeUInt32LE(content.length, 4)
  return Buffer.concat([header, content])
}

const content = noise(3_000, 1)
const [first, second] = [content.subarray(0, 2_000), content.subarray(2_000)]
const frames = [first, second].map((part) => zstdCompressSync(part)) as [Buffer, Buffer]
const aside = noise(700, 2)

/** Unpacks bytes that arrive in pieces of that size. */
const unpack = (bytes: Buffer, size: number, limits: ArchiveLimits = bundleArchiveLimits) =>
  buffer(decompress(Readable.from(cut(bytes, size)), limits))

function* cut(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const reasonOf = (unpacked: Promise<unknown>) =>
  unpacked.then(
    () => undefined,
    (error: unknown) => (error instanceof AppError ? error.details?.reason : error),
  )

describe.each([1, 7, 1_000, Infinity])('in pieces of %d bytes', (size) => {
  it.each<[string, Buffer[]]>([
    ['two frames', frames],
    ['a skippable frame before the first one', [skippable(aside), ...frames]],
    ['a skippable frame between two', [frames[0], skippable(aside, 15), frames[1]]],
    ['skippable frames at the end', [...frames, skippable(aside, 7), skippable(Buffer.alloc(0))]],
    ['a skippable frame that has a frame as its content', [skippable(frames[0]), ...frames]],
  ])('%s: the content of all frames is unpacked', async (_what, parts) => {
    expect((await unpack(Buffer.concat(parts), size)).equals(content)).toBe(true)
  })

  it.each<[string, Buffer, string]>([
    ['the header of a skippable frame is cut', skippable(aside).subarray(0, 7), 'Truncated'],
    ['a skippable frame is cut', skippable(aside).subarray(0, -1), 'Truncated'],
    ['other bytes follow a skippable frame', Buffer.concat([skippable(aside), aside]), 'TrailingBytes'],
    [
      'one byte follows a skippable frame',
      Buffer.concat([skippable(aside), aside.subarray(0, 1)]),
      'TrailingBytes',
    ],
  ])('%s: refused', async (_what, rest, reason) => {
    expect(await reasonOf(unpack(Buffer.concat([...frames, rest]), size))).toBe(reason)
    expect(await reasonOf(unpack(rest, size))).toBe(reason)
  })
})

it('skippable frames count as frames', async () => {
  const bytes = Buffer.concat(Array.from({ length: 1_000 }, () => skippable(Buffer.alloc(0))))
  expect(await reasonOf(unpack(bytes, 4_096, { ...defaultLimits, frames: 100 }))).toBe('TrailingBytes')
})

it.skipIf(spawnSync('pzstd', ['--version']).error)(
  'what pzstd writes is unpacked: a skippable frame before each frame',
  async () => {
    const large = noise(20_000_000, 3)
    const { stdout } = spawnSync('pzstd', ['-1', '-p', '4', '-c'], { input: large, maxBuffer: 2 ** 26 })
    expect(stdout.readUInt32LE(0)).toBe(0x184d2a50)
    for (const size of [9_973, 131_072]) expect((await unpack(stdout, size)).equals(large)).toBe(true)
  },
)
