import { opendir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { StagedUpload } from './content-store.ts'
import { missing } from './folder.ts'

const batch = 64

/**
 * Removes the folder of an upload. Its files go some at a time: `rm` alone looks at all 100,000 at once, which stopped the event loop
 * for 0.7 s.
 */
export async function removeUpload({ folder }: StagedUpload): Promise<void> {
  for (const name of ['blobs', 'parts']) await removeFiles(join(folder, name))
  await rm(folder, { recursive: true, force: true })
}

async function removeFiles(folder: string): Promise<void> {
  const entries = await opendir(folder, { bufferSize: batch }).catch(missing)
  if (!entries) return
  let waiting: Promise<unknown>[] = []
  for await (const entry of entries) {
    if (entry.isDirectory()) continue
    waiting.push(unlink(join(folder, entry.name)).catch(missing))
    if (waiting.length < batch) continue
    await Promise.all(waiting)
    waiting = []
  }
  await Promise.all(waiting)
}
