import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSlices } from '../../base/slices.ts'
import { AppError } from '../../errors/app-error.ts'
import { refuseFull } from '../../errors/storage-full.ts'
import { uploadErrors } from '../../upload/codes.ts'
import { bundleLimits } from '../format/limits.ts'
import { refuseBundle } from '../format/refusal.ts'
import type { ContentStore, StagedUpload } from '../store/content-store.ts'
import { hexOf } from '../store/folder.ts'
import type { Documents } from './documents.ts'
import type { NamedBlob, Wanted, WantedBlob } from './wanted.ts'

export interface LearnOptions {
  readonly upload: StagedUpload
  readonly store: Pick<ContentStore, 'hasBlob' | 'linkBlobs'>
  readonly documents: Documents
  /** Gets the blobs that are named. */
  readonly wanted: Wanted
  /** Blobs that all other uploads name: each takes memory. */
  readonly otherBlobs: () => number
}

const linkedAtOnce = 500
const emptyDigest = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/**
 * Takes in what a document names. What the upload or the store has of it counts as received; documents among that are read too.
 * @returns a function; its `present` are sizes of whole blobs of the upload, by digest. It throws AppError where the bundle breaks a rule,
 * and TooManyUploads
 */
export function createLearn({ upload, store, documents, wanted, otherBlobs }: LearnOptions) {
  const wholeFile = (digest: string) => join(upload.folder, 'blobs', hexOf(digest))

  async function learn(named: Iterable<NamedBlob>, present: ReadonlyMap<string, number>): Promise<void> {
    const slice = createSlices()
    const unread: WantedBlob[] = []
    for (let batch = named; ;) {
      const unknown: WantedBlob[] = []
      for (const each of batch) {
        await slice()
        if (!wanted.find(each.digest)) requireFewBlobs(wanted.count + 1)
        const blob = wanted.add(each)
        if (blob) unknown.push(blob)
        requireSameSize(each)
      }
      const whole = await takePresent(unknown, present)
      unread.push(...whole.filter(({ documentType }) => documentType !== undefined))
      const next = unread.pop()
      if (!next) return
      batch = await documents.read(next, wholeFile(next.digest))
    }
  }

  function requireFewBlobs(count: number): void {
    const most = bundleLimits.blobs
    if (count > most)
      throw refuseBundle('TooManyBlobs', 'index.json', `names more than the ${most} blobs that are allowed`)
    if (count + otherBlobs() > most)
      throw new AppError(
        uploadErrors.TooManyUploads,
        `the unfinished uploads name more than ${most} blobs; finish one, or delete one: GET /v1/edge-mgmt/content/uploads lists them`,
        { retryAfterSec: 30 },
      )
  }

  function requireSameSize({ digest, sizeBytes }: NamedBlob): void {
    const known = wanted.find(digest)?.sizeBytes
    if (known !== undefined && known !== sizeBytes)
      throw refuseBundle(
        'SizeDiffers',
        digest,
        `is named with ${known} and with ${sizeBytes} bytes; build the bundle again`,
      )
  }

  /** Counts what is on the disk already, and links what the store has. @returns the blobs that are whole */
  async function takePresent(blobs: readonly WantedBlob[], present: ReadonlyMap<string, number>) {
    const whole: WantedBlob[] = []
    const slice = createSlices()
    let linkable: string[] = []
    const link = async () => {
      for (const digest of await store.linkBlobs(upload, linkable)) {
        const blob = wanted.find(digest)
        if (!blob) continue
        requireSameSize({ ...blob, sizeBytes: (await stat(wholeFile(digest))).size })
        wanted.hold(blob, blob.sizeBytes, true)
        whole.push(blob)
      }
      linkable = []
    }
    for (const blob of blobs) {
      await slice()
      const { digest, sizeBytes } = blob
      const isEmpty = sizeBytes === 0 && digest === emptyDigest
      if (isEmpty) await writeFile(wholeFile(digest), '', { mode: 0o600 }).catch(refuseFull)
      if (blob.isWhole) whole.push(blob)
      else if (present.get(digest) === sizeBytes || isEmpty) {
        wanted.hold(blob, sizeBytes, true)
        whole.push(blob)
      } else if (store.hasBlob(digest)) linkable.push(digest)
      if (linkable.length >= linkedAtOnce) await link()
    }
    if (linkable.length > 0) await link()
    return whole
  }

  return learn
}
