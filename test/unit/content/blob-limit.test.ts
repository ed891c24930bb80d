import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { ContentStore } from '../../../src/content/store/content-store.ts'
import { openBlobUpload, createDocuments } from '../../../src/content/uploads/blob-upload.ts'
import { uploadErrors } from '../../../src/upload/codes.ts'

let folder: string
afterEach(() => rm(folder, { recursive: true }))

const digest = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`

/** An upload whose index names two manifests, beside others that name so many blobs. */
async function open(otherBlobs: number) {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-upload-'))
  for (const name of ['blobs', 'parts']) await mkdir(join(folder, name))
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifests = ['a', 'b'].map((text) => ({ mediaType, digest: digest(text), size: 1 }))
  const index = JSON.stringify({ schemaVersion: 2, manifests })
  await writeFile(join(folder, 'index.json'), index)
  const store = { hasBlob: () => false } as unknown as ContentStore
  const note = { kind: 'blobs' as const, name: '', fileName: '', createdAt: 0, bootId: '', signedBy: '' }
  return openBlobUpload({
    ...{
      upload: { uid: 'u', folder },
      note: { ...note, indexDigest: digest(index) },
      indexDigest: digest(index),
    },
    ...{ store, otherBlobs: () => otherBlobs, now: () => 0, monotonic: () => 0, lastActivityAt: 0 },
    documents: createDocuments({ name: () => Promise.reject(new Error('small documents need no program')) }),
  })
}

it('all unfinished uploads together name as many blobs as one bundle may have', async () => {
  expect((await open(499_998)).blobCount()).toBe(2)
  await rm(folder, { recursive: true })
  await expect(open(499_999)).rejects.toMatchObject({ kind: uploadErrors.TooManyUploads })
})
