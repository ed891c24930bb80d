import { link } from 'node:fs/promises'
import { join } from 'node:path'
import { refuseFull } from '../../errors/storage-full.ts'
import type { StagedUpload } from './content-store.ts'
import { hexOf, type ContentFolder } from './folder.ts'

/**
 * Links blobs of the store into an upload.
 * @returns the digests that the upload has now. A blob is left out if its bundle was deleted meanwhile, or if it has the most links
 *   that the file system allows
 * @throws AppError StorageFull
 */
export async function linkBlobs(
  { blobs }: ContentFolder,
  { folder }: StagedUpload,
  digests: readonly string[],
): Promise<string[]> {
  const linked: string[] = []
  for (const digest of digests) {
    const isLinked = await link(join(blobs, hexOf(digest)), join(folder, 'blobs', hexOf(digest))).then(
      () => true,
      (error: unknown) => {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EEXIST') return true
        return code === 'ENOENT' || code === 'EMLINK' ? false : refuseFull(error)
      },
    )
    if (isLinked) linked.push(digest)
  }
  return linked
}
