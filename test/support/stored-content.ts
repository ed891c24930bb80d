import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Published, StagedUpload } from '../../src/content/store/content-store.ts'
import type { OpenStore } from '../../src/content/store/open-store.ts'
import { hexOfBytes, writeUpload, type TestBundle } from './content-bundles.ts'

/**
 * What tests do with a store, and what they see of it on the disk.
 * @param storeOf the store of now, since a test may open it again
 * @param folderOf has the folder `content` and the index
 */
export function storedContent(storeOf: () => OpenStore, folderOf: () => string) {
  return {
    async publish(bundle: TestBundle): Promise<Published & { readonly upload: StagedUpload }> {
      const upload = await storeOf().stage()
      const order = await writeUpload(upload, bundle)
      return { upload, ...(await storeOf().publish(upload, order)) }
    },
    /** Closes the store and removes its index. */
    async loseIndex(): Promise<void> {
      await storeOf().close()
      for (const end of ['', '-wal', '-shm']) await rm(join(folderOf(), `content.db${end}`), { force: true })
    },
    blobsOnDisk: async () => (await readdir(storeOf().blobs)).sort(),
    filesOf: (path: string) => readdir(join(folderOf(), 'content', path)),
    /** Of the published bundles, the newest first. */
    names: () =>
      storeOf()
        .index()
        .list()
        .map(({ name }) => name),
    fileOf: (blob: Buffer) => join(storeOf().blobs, hexOfBytes(blob)),
  }
}

export const hexesOf = (...blobs: Buffer[]) => blobs.map(hexOfBytes).sort()
