import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openRegularFile } from '../../system/regular-file.ts'
import type { Verified, VerifyOrder } from './protocol.ts'

const chunkBytes = 262_144

/** Reads blobs at a given rate and compares their content with their names. A blob that cannot be read is damaged. */
export async function verify({ blobs, digests, bytesPerSecond }: VerifyOrder): Promise<Verified> {
  const pace = createPace(bytesPerSecond)
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  const damaged: string[] = []
  for (const digest of digests) {
    const hex = digest.slice(digest.indexOf(':') + 1)
    const found = await hashFile(join(blobs, hex), buffer, pace.took).catch(() => undefined)
    if (found !== hex) damaged.push(digest)
  }
  return { damaged, sizeBytes: pace.sizeBytes() }
}

/** Whether a file can be read and its content has that digest. @param hex SHA-256 */
export const isIntact = async (file: string, hex: string): Promise<boolean> =>
  (await hashFile(file, Buffer.allocUnsafeSlow(chunkBytes), async () => undefined).catch(() => undefined)) ===
  hex

async function hashFile(
  file: string,
  buffer: Buffer,
  took: (bytes: number) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256')
  const handle = await openRegularFile(file)
  try {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length)
      if (bytesRead === 0) return hash.digest('hex')
      hash.update(buffer.subarray(0, bytesRead))
      await took(bytesRead)
    }
  } finally {
    await handle.close()
  }
}

/** Waits after each piece until that many bytes are due at the given rate. */
function createPace(bytesPerSecond: number | undefined) {
  const since = performance.now()
  let sizeBytes = 0
  return {
    async took(bytes: number) {
      sizeBytes += bytes
      if (bytesPerSecond === undefined) return
      const aheadMs = since + (sizeBytes / bytesPerSecond) * 1_000 - performance.now()
      if (aheadMs > 1) await delay(aheadMs)
    },
    sizeBytes: () => sizeBytes,
  }
}
