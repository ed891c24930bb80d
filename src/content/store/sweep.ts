import { opendir, readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ContentIndex } from './content-index.ts'
import { isHex, missing, removeBlob, type ContentFolder } from './folder.ts'
import { createSlices } from '../../base/slices.ts'

export interface SweepOptions {
  readonly folder: ContentFolder
  readonly index: ContentIndex
  /** Folder of blobs of the upload whose publication was not finished: it gets its blobs back. Without it they are removed. */
  readonly into?: string | undefined
  /** Whether blobs that no record names stay where they are: a record cannot be read, and may name them. */
  readonly areOrphansKept: boolean
  /** Milliseconds since 1970. */
  readonly now: number
}

export interface Swept {
  /** Blobs that were removed, or moved back into an upload. */
  readonly orphans: number
  /** Hex of blobs that were not known to be damaged: they are missing. */
  readonly missing: readonly string[]
}

/**
 * Makes folder and index agree on the blobs: removes blobs that no bundle names, and notes which are missing. A blob is damaged
 * if, and only if, `damaged` has a file of its name.
 */
export async function sweepBlobs(options: SweepOptions): Promise<Swept> {
  const { folder, index, into, areOrphansKept, now } = options
  const rest = createSlices()
  const damaged = new Set(await readdir(folder.damaged))
  for (const hex of damaged) {
    if (index.blob(hex)) continue
    if (!areOrphansKept) await removeBlob(join(folder.damaged, hex))
    await rest()
  }

  // One byte for each id: 100,000 digests as text would take 10 MB.
  const seen = new Uint8Array(index.lastBlob() + 1)
  let orphans = 0
  for await (const { name: hex } of await opendir(folder.blobs, { bufferSize: 256 })) {
    await rest()
    if (!isHex(hex)) continue
    const known = index.blob(hex)
    // A copy of a damaged blob is one whose publication was not finished, so it may not be on the disk.
    if (known && !damaged.has(hex)) {
      seen[known.id] = 1
      if (known.isDamaged === 1) index.setDamaged(hex, undefined)
      continue
    }
    if (areOrphansKept && !known) continue
    await takeOut(folder, hex, into)
    orphans += 1
  }

  const lost: string[] = []
  for (let last = 0; ;) {
    await rest()
    const some = index.blobsAfter(last, 500)
    for (const { id, hex, isDamaged } of some) {
      last = id
      if (seen[id] === 1) continue
      if (isDamaged === 0) index.setDamaged(hex, now)
      if (damaged.has(hex)) continue
      await writeFile(join(folder.damaged, hex), '', { mode: 0o600 })
      lost.push(hex)
    }
    if (some.length === 0) return { orphans, missing: lost }
  }
}

async function takeOut(folder: ContentFolder, hex: string, into: string | undefined): Promise<void> {
  const file = join(folder.blobs, hex)
  if (into !== undefined) await rename(file, join(into, hex)).catch(missing)
  // rename(2) does nothing where both names are links of one file.
  await removeBlob(file)
}
