import { createReadStream, existsSync, linkSync } from 'node:fs'
import { join } from 'node:path'
import { readRecord } from '../format/record.ts'
import { refuseBundle } from '../format/refusal.ts'
import type { Published, PublishOrder } from './protocol.ts'

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
