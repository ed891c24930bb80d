import { createCipheriv } from 'node:crypto'

/** Bytes that cannot be compressed, the same on every machine. They come from a cipher, which makes them faster than a disk writes. */
export function* noise(seed: string, sizeBytes: number): Generator<Buffer> {
  const chunk = Buffer.alloc(1_048_576)
  const cipher = createCipheriv('aes-128-ctr', seed.padEnd(16), Buffer.alloc(16))
  for (let left = sizeBytes; left > 0; left -= chunk.length)
    yield cipher.update(chunk.subarray(0, Math.min(left, chunk.length)))
}
