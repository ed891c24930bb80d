import { spawnSync } from 'node:child_process'
import { constants, zstdCompressSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createFrameScanner } from '../../../src/archive/compression.ts'
import { noise } from '../../support/random.ts'

/** The ends of all frames, in bytes that arrive in pieces of that size. */
function endsOf(bytes: Buffer, size: number): number[] {
  const scanner = createFrameScanner()
  const ends: number[] = []
  for (let from = 0; from < bytes.length; from += size) {
    let rest = bytes.subarray(from, from + size)
    while (rest.length > 0) {
      const end = scanner.scan(rest)
      if (end === undefined) break
      rest = rest.subarray(end)
      ends.push(Math.min(bytes.length, from + size) - rest.length)
    }
  }
  return ends
}

const { ZSTD_c_checksumFlag, ZSTD_c_compressionLevel, ZSTD_c_contentSizeFlag } = constants
const contents = [Buffer.alloc(0), Buffer.from('x'), noise(300, 1), noise(70_000, 2), noise(300_000, 3)]
const texts = [Buffer.alloc(400_000), Buffer.from('text '.repeat(50_000))]
const frames = [...contents, ...texts].flatMap((content) =>
  [0, 1].flatMap((checksum) =>
    [0, 1].map((size) =>
      zstdCompressSync(content, {
        params: {
          [ZSTD_c_checksumFlag]: checksum,
          [ZSTD_c_contentSizeFlag]: size,
          [ZSTD_c_compressionLevel]: 3,
        },
      }),
    ),
  ),
)

it.each([1, 3, 1_000, 131_072, Infinity])('in pieces of %d bytes the end of each frame is found', (size) => {
  let at = 0
  const ends = frames.map(({ length }) => (at += length))
  expect(endsOf(Buffer.concat(frames), Math.min(size, at))).toEqual(ends)
})

it.skipIf(spawnSync('zstd', ['--version']).error)(
  'frames that zstd writes as a stream end where the file ends',
  () => {
    for (const options of [['-1'], ['-19'], ['--long=27'], ['--no-check'], ['-T2']]) {
      const { stdout } = spawnSync('zstd', ['-q', '-c', ...options], {
        input: noise(600_000, 4),
        maxBuffer: 2 ** 26,
      })
      expect(endsOf(stdout, 9_973)).toEqual([stdout.length])
    }
  },
)

it('bytes that are no frames are scanned to their end', () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const bytes = noise(2_000, seed)
    for (const end of endsOf(bytes, 7)) expect(end).toBeLessThanOrEqual(bytes.length)
  }
})
