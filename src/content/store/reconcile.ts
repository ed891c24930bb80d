import { readdir, stat, unlink, opendir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { StagedUpload } from './content-store.ts'
import {
  isHex,
  missing,
  type ContentFolder,
  removeBlob,
  hexOf,
  asideFile,
  isAside,
  recordFile,
  uidOfRecord,
} from './folder.ts'
import type { ContentIndex } from './content-index.ts'
import { createSlices } from '../../base/slices.ts'
import type { ContentProgram } from '../program/content-program.ts'
import type { Logger } from '../../system/log.ts'
import { RecordDamaged } from '../format/record.ts'

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

interface SweepOptions {
  readonly folder: ContentFolder
  readonly index: ContentIndex
  /** Folder of blobs of the upload whose publication was not finished: it gets its blobs back. Without it they are removed. */
  readonly into?: string | undefined
  /** Whether blobs that no record names stay where they are: a record cannot be read, and may name them. */
  readonly areOrphansKept: boolean
  /** Milliseconds since 1970. */
  readonly now: number
}

interface Swept {
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

interface RereadOptions {
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
 * Reads stored blobs again when an upload brings them: a disk may have altered one since it was stored, and the arrived one is intact.
 * Damaged ones are set aside, so that the publication puts the file of the upload into its place.
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

/**
 * Brings the index up to date with the records: after a start, a lost or older database, another disk.
 * @returns whether all records could be read; otherwise no blob may be removed, since it may be one of theirs
 */
export async function reconcile({
  folder,
  index,
  log,
}: {
  readonly folder: ContentFolder
  readonly index: ContentIndex
  readonly log: Logger
}): Promise<boolean> {
  const names = await readdir(folder.bundles)
  const uids = new Set(names.map(uidOfRecord).filter((uid) => uid !== undefined))
  const marks = new Map<string, string>()
  for (const uid of uids) marks.set(uid, await markOf(recordFile(folder, uid)))
  const known = new Set<string>()
  for (const { id, uid, isPublished, mark } of index.rows()) {
    if (isPublished === 1 && marks.get(uid) === mark) known.add(uid)
    else await index.remove(id)
  }
  let areReadable = true
  for (const [uid, mark] of marks) {
    if (known.has(uid)) continue
    const isRead = await addRecord(uid, mark)
    areReadable &&= isRead
  }
  for (const name of names.filter(isAside)) {
    areReadable = false
    warnAside(`${folder.bundles}/${name}`)
  }
  return areReadable

  async function addRecord(uid: string, mark: string): Promise<boolean> {
    const file = recordFile(folder, uid)
    try {
      index.show(await index.add(uid, file), mark)
      return true
    } catch (error) {
      const id = index.idOf(uid)
      if (id !== undefined) await index.remove(id)
      if (error instanceof RecordDamaged) {
        await rename(file, asideFile(folder, uid))
        log.error({ file, reason: error.message }, 'the record of a bundle is damaged and kept aside')
        warnAside(asideFile(folder, uid))
        return false
      }
      // The system's error of the file; one of SQLite ends the opening.
      if ((error as { errcode?: number }).errcode !== undefined) throw error
      log.error(
        { err: error, file },
        'the record of a bundle cannot be read; its bundle is missing until then',
      )
      return false
    }
  }

  function warnAside(file: string): void {
    log.error(
      { file },
      'no content is removed while this damaged record is kept: upload its bundle again, or give the bundle up with rm, then restart edgehostd',
    )
  }
}

/** Tells one record from another of the same bundle, as after a restored copy. */
export async function markOf(file: string): Promise<string> {
  const found = await stat(file).catch(missing)
  return found ? `${found.size}-${Math.trunc(found.mtimeMs)}` : ''
}
