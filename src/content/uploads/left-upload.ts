import { opendir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf } from '../format/descriptor.ts'
import type { StagedUpload } from '../store/content-store.ts'
import { readHeld } from './part.ts'

/** Whether a power cut has left index.json as it was sent; also true where that cannot be read now. */
export async function hasIndex({ folder }: StagedUpload, digest: string): Promise<boolean> {
  try {
    return digestOf(await readFile(join(folder, 'index.json'))) === digest
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

/** When a file of an upload was written last, milliseconds since 1970, UTC. */
export async function newestChange({ folder }: StagedUpload): Promise<number> {
  let newest = 0
  const note = async (file: string) => {
    newest = Math.max(newest, (await stat(file)).mtimeMs)
  }
  for (const name of ['upload.json', 'blobs', 'parts']) await note(join(folder, name))
  for await (const { name } of await opendir(join(folder, 'parts'), { bufferSize: 256 }))
    await note(join(folder, 'parts', name))
  return Math.floor(newest)
}

/** Hashes again what is whole, since a power cut may have emptied it; what differs is removed. @throws the reason of the signal */
export async function removeEmptied({ folder }: StagedUpload, signal: AbortSignal): Promise<void> {
  for await (const { name } of await opendir(join(folder, 'blobs'), { bufferSize: 256 })) {
    const file = join(folder, 'blobs', name)
    const { hash } = await readHeld(file, signal)
    if (hash.digest('hex') !== name) await rm(file)
  }
}
