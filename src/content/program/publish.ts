import { readFileSync, createReadStream, existsSync, linkSync } from 'node:fs'
import { namedByDocument, namedByIndexFile } from '../uploads/wanted.ts'
import type { Named, NameOrder, Order, Verified, VerifyOrder, Published, PublishOrder } from './protocol.ts'
import type { Readable } from 'node:stream'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openRegularFile } from '../../system/regular-file.ts'
import { readRecord } from '../format/record.ts'
import { refuseBundle } from '../format/refusal.ts'

/** Reads index.json, or an index or a manifest whose bytes have its digest. @throws AppError where it breaks a rule of bundles */
export function name({ file, document }: NameOrder): Named {
  const bytes = readFileSync(file)
  const blobs = document ? namedByDocument(document, bytes) : namedByIndexFile(bytes)
  return { lines: blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('') }
}

const newline = 0x0a

/**
 * Reads the first line as an order; the bytes after it can still be read.
 * @throws Error if the input ends before
 */
export async function receiveOrder(input: Readable): Promise<Order> {
  const line: Buffer[] = []
  for await (const chunk of input.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const end = chunk.indexOf(newline)
    line.push(end === -1 ? chunk : chunk.subarray(0, end))
    if (end === -1) continue
    if (end + 1 < chunk.length) input.unshift(chunk.subarray(end + 1))
    return JSON.parse(Buffer.concat(line).toString()) as Order
  }
  throw new Error('standard input ended before the order did')
}

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

const shownMissing = 20

/**
 * Gives the store the blobs that `record.jsonl` names and that it does not have, as further names of the files of the
 * upload. The upload keeps its own names: should the record not be published in the end, nothing of it is lost. It may
 * be killed at any point and run again. Nothing is synced.
 * @throws AppError BundleIncomplete if neither has a blob; the store is then unchanged
 */
export async function publish({ upload, blobs }: PublishOrder): Promise<Published> {
  const additions: (readonly [from: string, to: string])[] = []
  const missing: string[] = []
  const digests: string[] = []
  const record = createReadStream(join(upload, 'record.jsonl'), { highWaterMark: 262_144 })
  const { indexDigest } = await readRecord(record as AsyncIterable<Buffer>, {
    onBlob: ([digest]) => digests.push(digest),
  })
  for (const digest of digests) {
    const hex = digest.slice('sha256:'.length)
    const to = join(blobs, hex)
    if (existsSync(to)) continue
    const from = join(upload, digest === indexDigest ? 'index.json' : `blobs/${hex}`)
    if (existsSync(from)) additions.push([from, to])
    else missing.push(digest)
  }
  const [first] = missing
  if (first !== undefined)
    throw refuseBundle('BlobMissing', first, 'is not in the upload and not on this host; send it', {
      missingCount: missing.length,
      missing: missing.slice(0, shownMissing).map((digest) => ({ digest })),
    })
  for (const [from, to] of additions) linkSync(from, to)
  return { movedCount: additions.length }
}
