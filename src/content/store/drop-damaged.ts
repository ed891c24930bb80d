import { readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { StagedUpload } from './content-store.ts'
import { isHex, missing, type ContentFolder } from './folder.ts'

/**
 * Removes blobs of an upload that are damaged: it has linked them before the damage was found, so they are the file that was set
 * aside. A blob that was sent is another file, and stays.
 * @returns `sha256:<hex>` of each
 */
export async function dropDamaged({ damaged }: ContentFolder, { folder }: StagedUpload): Promise<string[]> {
  const dropped: string[] = []
  for (const hex of (await readdir(damaged)).filter(isHex)) {
    const file = join(folder, 'blobs', hex)
    const [aside, own] = await Promise.all([
      stat(join(damaged, hex)).catch(missing),
      stat(file).catch(missing),
    ])
    if (!aside || aside.ino !== own?.ino || aside.dev !== own.dev) continue
    await unlink(file)
    dropped.push(`sha256:${hex}`)
  }
  return dropped
}
