import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { missing } from '../store/folder.ts'

export interface UploadBytesOptions {
  /** Folder of the uploads. */
  readonly folder: string
  /** Milliseconds since some moment. */
  readonly monotonic?: () => number
}

// An upload may have 100,000 files, whose sizes take seconds: such a sum is kept for a minute.
const keptFiles = 1_000
const keptMs = 60_000
const atOnce = 64

/**
 * What the files of unfinished uploads take, without blobs that the store has too: such a blob is a second link of one file. Callers
 * share one reading of the folder, and the result of a long one.
 */
export function createUploadBytes({ folder, monotonic = () => performance.now() }: UploadBytesOptions) {
  let reading: Promise<number> | undefined
  let kept: { readonly bytes: number; readonly until: number } | undefined

  async function read(): Promise<number> {
    let bytes = 0
    let files = 0
    for await (const some of batches(folder)) {
      files += some.length
      for (const found of await Promise.all(some.map((file) => stat(file).catch(missing))))
        if (found?.nlink === 1) bytes += found.size
    }
    kept = files > keptFiles ? { bytes, until: monotonic() + keptMs } : undefined
    return bytes
  }

  return async (): Promise<number> => {
    if (kept && monotonic() < kept.until) return kept.bytes
    reading ??= read().finally(() => (reading = undefined))
    return reading
  }
}

/** The files of all uploads, some at a time. */
async function* batches(folder: string): AsyncGenerator<string[]> {
  for await (const { name } of await opendir(folder)) {
    for (const below of ['', 'blobs', 'parts']) {
      const place = join(folder, name, below)
      let some: string[] = []
      // Gone, or a file.
      const entries = await opendir(place, { bufferSize: atOnce }).catch(() => undefined)
      for await (const entry of entries ?? []) {
        if (!entry.isFile() || some.push(join(place, entry.name)) < atOnce) continue
        yield some
        some = []
      }
      yield some
    }
  }
}
