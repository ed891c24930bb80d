import { readFile, link, opendir, rm, unlink, rename, stat, writeFile } from 'node:fs/promises'
import { createLock } from '../../base/lock.ts'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { missing, hexOf, type ContentFolder, isHex, recordFile, removeBlob } from './folder.ts'
import { join } from 'node:path'
import { refuseFull } from '../../errors/system-reason.ts'
import type { StagedUpload, Published, PublishOrder } from './content-store.ts'
import type { Logger } from '../../system/log.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { ContentProgram } from '../program/content-program.ts'
import type { ExaminedBundle } from '../program/protocol.ts'
import type { ContentIndex, IndexedBundle } from './content-index.ts'
import type { ContentDefinitions } from './definitions.ts'
import { markOf } from './reconcile.ts'
import { createSlices } from '../../base/slices.ts'

/**
 * Numbers publications: each gets the time of its clock, or one more than the highest number before. So the newest bundle is the one that
 * was published last also where the clock was set back.
 * @param file has the highest number, also of bundles that were deleted since; if it is lost, the bundles that are there count
 * @param highest number of these
 * @returns the number of a publication at a time, milliseconds since 1970
 */
function createPublicationNumbers({
  file,
  highest,
}: {
  readonly file: string
  readonly highest: () => number
}): (publishedAt: number) => Promise<number> {
  const lock = createLock()
  return (publishedAt) =>
    lock(async () => {
      const kept = Number(await readFile(file, 'utf8').catch(missing))
      const before = Math.max(highest(), Number.isSafeInteger(kept) ? kept : 0)
      const publication = Math.max(publishedAt, before + 1)
      await replaceFile(file, `${publication}\n`, 0o600)
      return publication
    })
}

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

const batch = 64

/**
 * Removes the folder of an upload. Its files go some at a time: `rm` alone handles all 100,000 at once, which stopped the event loop
 * for 0.7 s.
 */
export async function removeUpload({ folder }: StagedUpload): Promise<void> {
  for (const name of ['blobs', 'parts']) await removeFiles(join(folder, name))
  await rm(folder, { recursive: true, force: true })
}

async function removeFiles(folder: string): Promise<void> {
  const entries = await opendir(folder, { bufferSize: batch }).catch(missing)
  if (!entries) return
  // Each removal is awaited as soon as it has begun. One that failed while the folder was still being read was an unhandled rejection, which ended
  // the daemon.
  const names: string[] = []
  const removeNamed = () =>
    Promise.all(names.splice(0).map((name) => unlink(join(folder, name)).catch(missing)))
  for await (const entry of entries) {
    if (!entry.isDirectory()) names.push(entry.name)
    if (names.length === batch) await removeNamed()
  }
  await removeNamed()
}

interface PublicationOptions {
  readonly folder: ContentFolder
  /** The open index. */
  readonly index: () => ContentIndex
  readonly program: Pick<ContentProgram, 'publish'>
  /** Runs sync(1). */
  readonly runner: CommandRunner
  readonly definitions: ContentDefinitions | undefined
  readonly log: Logger
  /** Called when a publication has failed: gives the upload its blobs back. */
  readonly undo: (upload: StagedUpload) => Promise<void>
  /** Called when a bundle is published, or has other blobs than before. */
  readonly onPublished: (indexDigest: string) => Promise<void>
}

/** A file in the folder of an upload while its blobs are moved: after a kill, they are moved back. */
export const markerName = 'publishing'
const recordName = 'record.jsonl'
// On a slow disk 22 GB take minutes.
const syncTimeoutMs = 3_600_000
const linkedAtOnce = 500

/** An upload that was examined for its publication. Neither verb fails. */
interface Prepared {
  /** Puts its definition into a slot, once it is published. */
  place(): Promise<void>
  /** Removes the files left by the examination of its definition. */
  discard(): Promise<void>
}

/** Publication of an upload as a bundle. */
export function createPublication(options: PublicationOptions) {
  const { folder, index, program, runner, definitions, log, undo, onPublished } = options
  const nextPublication = createPublicationNumbers({
    file: folder.publicationFile,
    highest: () => index().lastPublication(),
  })

  /**
   * Examines an upload, which may take minutes. Others may be published and removed meanwhile: the upload has files of
   * its own.
   * @returns undefined if a bundle with the same index is published
   */
  async function prepare(upload: StagedUpload, order: PublishOrder): Promise<Prepared | undefined> {
    order.signal?.throwIfAborted()
    // index.json is a blob of the bundle too.
    const indexBlob = join(upload.folder, 'blobs', hexOf(order.indexDigest))
    await link(join(upload.folder, 'index.json'), indexBlob).catch(existing)
    if (index().findByIndex(order.indexDigest)) return undefined
    const publication = await nextPublication(order.bundle.publishedAt)
    const bundle = { ...order.bundle, publication }
    const definition = await examineDefinition(upload, { ...order, bundle }, await order.examine(bundle))
    const report = (error: unknown) =>
      log.error({ err: error }, 'the definition of a bundle could not be placed')
    return {
      place: async () => definition?.place().catch(report),
      discard: async () => definition?.discard().catch(report),
    }
  }

  /**
   * Publishes an upload. Nothing else may change the store meanwhile.
   * @returns undefined if it is not prepared, and the bundle with its index was removed since
   */
  async function publish(
    upload: StagedUpload,
    order: PublishOrder,
    isPrepared: boolean,
  ): Promise<Published | undefined> {
    order.signal?.throwIfAborted()
    const present = index().findByIndex(order.indexDigest)
    if (!present && !isPrepared) return undefined
    const { bundle, addedBlobs } = present
      ? await complete(upload, present, order)
      : await publishNew(upload, order)
    await removeUpload(upload)
    return { bundle, isNew: !present, addedBlobs, damagedBlobs: index().damaged(bundle.id).length }
  }

  async function publishNew(upload: StagedUpload, order: PublishOrder): Promise<Completed> {
    await makeVisible(upload, upload.uid, undefined, order.signal)
    await onPublished(order.indexDigest)
    return { bundle: find(upload.uid), addedBlobs: 0 }
  }

  async function examineDefinition(
    upload: StagedUpload,
    { bundle: { name, publication: publishedAt = 0 }, signal }: PublishOrder,
    { definition }: Awaited<ReturnType<PublishOrder['examine']>>,
  ) {
    if (!definition || !definitions) return undefined
    return definitions.examineBundled({
      file: join(upload.folder, 'blobs', hexOf(definition.digest)),
      sizeBytes: definition.sizeBytes,
      bundle: { uid: upload.uid, name, publishedAt },
      signal: signal ?? new AbortController().signal,
    })
  }

  function find(uid: string): IndexedBundle {
    const bundle = index().find(uid)
    if (!bundle) throw new Error(`the bundle ${uid} is published and not in the index`)
    return bundle
  }

  /** Gives a published bundle blobs of an upload with the same index: its damaged ones, and those that it lacks. */
  async function complete(
    upload: StagedUpload,
    present: IndexedBundle,
    order: PublishOrder,
  ): Promise<Completed> {
    const same = { bundle: present, addedBlobs: 0 }
    await repair(upload, present, order.indexDigest)
    // A blob that stays damaged cannot be in the union of the two.
    const isUsable = index().damaged(present.id).length === 0
    if (!isUsable || !(await hasMore(upload, present)) || !(await linkAll(upload, present))) return same
    const { blobCount } = await order.examine(factsOf(present))
    // The upload may have blobs that nothing names.
    if (blobCount <= present.blobCount) return same
    await makeVisible(upload, present.uid, present.id, order.signal)
    await onPublished(order.indexDigest)
    return { bundle: find(present.uid), addedBlobs: blobCount - present.blobCount }
  }

  async function hasMore({ folder: upload }: StagedUpload, { id }: IndexedBundle): Promise<boolean> {
    const slice = createSlices()
    for await (const { name } of await opendir(join(upload, 'blobs'), { bufferSize: 256 })) {
      if (isHex(name) && !index().names(id, name)) return true
      await slice()
    }
    return false
  }

  /** Links all blobs of a bundle into an upload. @returns whether that was possible */
  async function linkAll(upload: StagedUpload, { id }: IndexedBundle): Promise<boolean> {
    for (let last = 0; ;) {
      const some = index().blobsOfAfter(id, last, linkedAtOnce)
      if (some.length === 0) return true
      const digests = some.map(({ hex }) => `sha256:${hex}`)
      if ((await linkBlobs(folder, upload, digests)).length < some.length) return false
      last = some.at(-1)?.id ?? last
    }
  }

  /**
   * The step itself, undone if it fails.
   * @param uid of the bundle
   * @param replaced row of the bundle whose record is replaced
   */
  async function makeVisible(
    upload: StagedUpload,
    uid: string,
    replaced: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const record = join(upload.folder, recordName)
    const published = recordFile(folder, uid)
    const marker = join(upload.folder, markerName)
    const former = join(upload.folder, 'former.jsonl')
    let isRenamed = false
    try {
      // First the index: a full disk of the state folder then ends the publication before anything is visible.
      const id = await index().add(upload.uid, record, uid)
      await writeFile(marker, '')
      await moveBlobs(upload, id, signal)
      signal?.throwIfAborted()
      if (replaced !== undefined) {
        await unlink(former).catch(missing)
        await link(published, former)
      }
      // From here on it is published, even if the session of its client ends.
      await rename(record, published)
      isRenamed = true
      await syncFolder(folder.bundles)
      const mark = await markOf(published)
      if (replaced === undefined) index().show(id, mark)
      else index().replace(replaced, id, mark)
    } catch (error) {
      if (isRenamed) await (replaced === undefined ? rename(published, record) : rename(former, published))
      await undo(upload)
      throw error
    }
    if (replaced !== undefined) await index().remove(replaced)
  }

  /** Gives the store the blobs of the record that it does not have, and waits until they are on the disk. */
  async function moveBlobs(upload: StagedUpload, id: number, signal: AbortSignal | undefined): Promise<void> {
    await program.publish({ upload: upload.folder, blobs: folder.blobs }, signal ? { signal } : {})
    await sync()
    // Before the record is renamed: after a kill, blobs that have a file in `damaged` would be taken out of the store again.
    await clearDamage(index().damaged(id))
  }

  async function sync(): Promise<void> {
    const { root } = folder
    const { exitCode, stderr } = await runner.run('sync', ['-f', root], { timeoutMs: syncTimeoutMs })
    if (exitCode !== 0) throw new Error(`sync -f ${root}: ${stderr.trim()}`)
  }

  /** Gives the store the damaged blobs of a bundle that an upload has. */
  async function repair(upload: StagedUpload, { id }: IndexedBundle, indexDigest: string): Promise<void> {
    const whole: string[] = []
    for (const hex of index().damaged(id)) {
      const found = await stat(join(upload.folder, 'blobs', hex)).catch(missing)
      if (found) whole.push(hex)
    }
    if (whole.length === 0) return
    const marker = join(upload.folder, markerName)
    try {
      await writeFile(marker, '')
      for (const hex of whole)
        await link(join(upload.folder, 'blobs', hex), join(folder.blobs, hex)).catch(existing)
      await sync()
      await clearDamage(whole)
      await unlink(marker)
    } catch (error) {
      await undo(upload)
      throw error
    }
    await onPublished(indexDigest)
  }

  async function clearDamage(hexes: readonly string[]): Promise<void> {
    if (hexes.length === 0) return
    for (const hex of hexes) await removeBlob(join(folder.damaged, hex))
    await syncFolder(folder.damaged)
    for (const hex of hexes) index().setDamaged(hex, undefined)
    log.info({ blobs: hexes.length }, 'damaged blobs were repaired by an upload')
  }

  return { prepare, publish }
}

interface Completed {
  readonly bundle: IndexedBundle
  readonly addedBlobs: number
}

/** Name, time and origin of a bundle: its new record has the same. */
const factsOf = (bundle: IndexedBundle): ExaminedBundle => {
  const { uid, name, publishedAt, publication, via, fileName, fileSizeBytes, fileSha256 } = bundle
  return { uid, name, publishedAt, publication, via, fileName, fileSizeBytes, fileSha256 }
}

function existing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
