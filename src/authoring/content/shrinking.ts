import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { unreadable, type PlannedBlob } from './part.ts'

const compress = promisify(zstdCompress)

const sampleBytes = 262_144
const samplesOfBlob = 4
// The largest decide; the rest of thousands is small beside them.
const mostBlobs = 200

/**
 * The part of its size that a bundle would have with zstd, from samples: layers of images are compressed already, so most bundles shrink by a few
 * hundredths, and packing them takes minutes.
 * @returns from 0 to about 1; 1 for a bundle without content
 * @throws Failure where a blob cannot be read
 */
export async function estimateShrinking(blobs: readonly PlannedBlob[]): Promise<number> {
  const largest = [...blobs].sort((one, other) => other.sizeBytes - one.sizeBytes).slice(0, mostBlobs)
  let [before, after] = [0, 0]
  for (const blob of largest) {
    const samples = await readSamples(blob).catch((error: unknown) => {
      throw unreadable(blob.place, error)
    })
    const sampled = Buffer.concat(samples)
    if (sampled.length === 0) continue
    before += blob.sizeBytes
    after += (blob.sizeBytes * (await compress(sampled)).length) / sampled.length
  }
  return before === 0 ? 1 : after / before
}

/** Pieces of a blob, spread evenly; the whole of a small one. */
async function readSamples({ from, sizeBytes }: PlannedBlob): Promise<Uint8Array[]> {
  const count = sizeBytes <= samplesOfBlob * sampleBytes ? 1 : samplesOfBlob
  const length = Math.min(sizeBytes, count === 1 ? samplesOfBlob * sampleBytes : sampleBytes)
  const offsets = Array.from({ length: count }, (_, index) =>
    count === 1 ? 0 : Math.floor(((sizeBytes - length) * index) / (count - 1)),
  )
  if (from instanceof Uint8Array) return offsets.map((offset) => from.subarray(offset, offset + length))
  const handle = await open(from.path)
  try {
    const samples: Uint8Array[] = []
    for (const offset of offsets) {
      const buffer = Buffer.alloc(length)
      const { bytesRead } = await handle.read(buffer, 0, length, (from.start ?? 0) + offset)
      samples.push(buffer.subarray(0, bytesRead))
    }
    return samples
  } finally {
    await handle.close()
  }
}
