import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ContentProgram } from '../program/content-program.ts'
import type { ContentIndex } from './content-index.ts'
import type { StagedUpload } from './content-store.ts'
import { hexOf, isHex, missing, type ContentFolder } from './folder.ts'

export interface RereadOptions {
  readonly folder: ContentFolder
  /** The open index. */
  readonly index: () => ContentIndex
  readonly verify: ContentProgram['verify']
  /** Moves damaged blobs out of the store. */
  readonly setAside: (hexes: readonly string[]) => Promise<void>
}

// The order and the finding of the program are texts in memory.
const atOnce = 2_000

/**
 * Reads stored blobs again when an upload brings them: a disk may have altered one since it was stored, and what has arrived is intact.
 * What is damaged is set aside, so that the publication puts the file of the upload into its place.
 */
export function createReread({ folder, index, verify, setAside }: RereadOptions) {
  async function read(hexes: AsyncIterable<string> | Iterable<string>, signal?: AbortSignal): Promise<void> {
    let some: string[] = []
    const readSome = async () => {
      if (some.length === 0) return
      const digests = some.map((hex) => `sha256:${hex}`)
      some = []
      const { damaged } = await verify({ blobs: folder.blobs, digests }, signal ? { signal } : {})
      if (damaged.length > 0) await setAside(damaged.map(hexOf))
    }
    for await (const hex of hexes) {
      some.push(hex)
      if (some.length === atOnce) await readSome()
    }
    await readSome()
  }

  /** The stored blobs of which the upload has a file of its own, not a further name of the stored one. */
  async function* broughtBy({ folder: upload }: StagedUpload): AsyncIterable<string> {
    for await (const { name: hex } of await opendir(join(upload, 'blobs'), { bufferSize: 256 })) {
      if (!isHex(hex) || !index().hasBlob(hex)) continue
      const [own, stored] = await Promise.all(
        [join(upload, 'blobs', hex), join(folder.blobs, hex)].map((file) => stat(file).catch(missing)),
      )
      if (own && (own.ino !== stored?.ino || own.dev !== stored.dev)) yield hex
    }
  }

  function* wholeOf(bundle: number): Iterable<string> {
    for (let last = 0; ;) {
      const some = index().blobsOfAfter(bundle, last, atOnce)
      for (const { hex, isDamaged } of some) if (isDamaged === 0) yield hex
      last = some.at(-1)?.id ?? last
      if (some.length === 0) return
    }
  }

  return {
    ofUpload: (upload: StagedUpload, signal?: AbortSignal) => read(broughtBy(upload), signal),
    ofBundle: (id: number, signal?: AbortSignal) => read(wholeOf(id), signal),
  }
}
