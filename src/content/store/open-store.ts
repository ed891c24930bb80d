import { documentPath } from '../../base/program.ts'
import { AppError } from '../../errors/app-error.ts'
import { StartError } from '../../errors/start-error.ts'
import { isFull, refuseFull, storageFull } from '../../errors/system-reason.ts'
import type { Logger } from '../../system/log.ts'
import { contentErrors } from '../codes.ts'
import { readFile, mkdir, readdir, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { createLock } from '../../base/lock.ts'
import {
  missing,
  contentFolder,
  hexOf,
  isAside,
  makeContentFolder,
  removeBlob,
  recordFile,
  requireWritable,
  type ContentFolder,
  createContentSpace,
  type FileSystemRoom,
} from './folder.ts'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { stoppingError } from '../../errors/stopping.ts'
import { isUnwritable } from '../../store/unwritable.ts'
import type { Clock } from '../../system/clock.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentProgram } from '../program/content-program.ts'
import { createContentIndex, type ContentIndex, type IndexedBundle, type Totals } from './content-index.ts'
import { openIndexDatabase, removeIndexDatabase } from './index-database.ts'
import type { ContentStore, StagedUpload } from './content-store.ts'
import { type ContentDefinitions, createAnnouncement } from './definitions.ts'
import { dropDamaged, reconcile, createReread, sweepBlobs } from './reconcile.ts'
import { linkBlobs, createPublication, markerName, removeUpload } from './publication.ts'
import { requireOwnFolder, writeIndexFile } from './own-folder.ts'

// Primary result code of https://www.sqlite.org/rescode.html
const sqliteFull = 13

/**
 * For `catch` around work on the store: the error for clients in place of one of the file system or of SQLite, which is logged.
 * @throws AppError StorageFull, ContentUnavailable, or the error itself if it is an AppError
 */
function unavailable(log: Logger, root: string) {
  return (error: unknown): never => {
    if (error instanceof AppError) throw error
    const { errcode } = error as { readonly errcode?: number }
    if (errcode !== undefined && (errcode & 0xff) === sqliteFull) throw storageFull(undefined, error)
    if (isFull(error)) refuseFull(error)
    log.error(
      { err: error, folder: root },
      error instanceof StartError
        ? `the content cannot be used: ${error.message}`
        : `the content cannot be read or written; see: findmnt -T ${root}; df ${root}; dmesg --level=err`,
    )
    throw new AppError(
      contentErrors.ContentUnavailable,
      'the content of this host cannot be read or written; the journal of the host says why',
      { cause: error, retryAfterSec: 30 },
    )
  }
}

/** Entries that other rooms need. A file of the content, so that it is not lost with the database. */
interface Pins {
  /** Replaces the entries that a holder needs; none ends its pins. @param digests of entries, `sha256:<hex>` */
  set(holder: string, digests: readonly string[]): Promise<void>
  /** Digests with their holders. */
  holders(): ReadonlyMap<string, readonly string[]>
}

/** @throws the system's error; a damaged file is reported and counts as empty, since its writers pin again at their start */
async function openPins(file: string, log: Logger): Promise<Pins> {
  let pins = await readPins(file, log)
  const lock = createLock()
  return {
    set: (holder, digests) =>
      lock(async () => {
        const wanted = [...new Set(digests)].sort()
        // So that a start writes nothing, which a full disk would refuse.
        if (isEqual(wanted, pins[holder] ?? [])) return
        const others = Object.entries(pins).filter(([name]) => name !== holder)
        const own = wanted.length === 0 ? [] : [[holder, wanted] as const]
        const next = Object.fromEntries([...others, ...own])
        await replaceFile(file, `${JSON.stringify(next)}\n`, 0o600)
        pins = next
      }),
    holders() {
      const holders = new Map<string, string[]>()
      for (const [holder, digests] of Object.entries(pins))
        for (const digest of digests) holders.set(digest, [...(holders.get(digest) ?? []), holder])
      return holders
    },
  }
}

async function readPins(file: string, log: Logger): Promise<Readonly<Record<string, readonly string[]>>> {
  const text = await readFile(file, 'utf8').catch(missing)
  if (text === undefined) return {}
  try {
    return parsePins(text)
  } catch (error) {
    log.error({ err: error, file }, 'the file of pinned content is damaged and counts as empty')
    return {}
  }
}

/** @throws Error if the text is not what `set` writes */
function parsePins(text: string): Readonly<Record<string, readonly string[]>> {
  const pins = JSON.parse(text) as unknown
  if (typeof pins !== 'object' || pins === null || Array.isArray(pins))
    throw new Error('it is no JSON object')
  for (const [holder, digests] of Object.entries(pins))
    if (!Array.isArray(digests) || !digests.every((each) => typeof each === 'string'))
      throw new Error(`the pins of ${holder} are no digests`)
  return pins as Record<string, string[]>
}

const isEqual = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((each, index) => each === other[index])

interface StoreOptions {
  /** `content.directory`; it is made if it is missing. */
  readonly root: string
  /** Throws if the folder is not on the disk that it has to be on. */
  readonly requirePlace: () => Promise<void>
  readonly reserve: ContentSettings['reserve']
  /** Path of the index, an SQLite file; made again when it is missing. */
  readonly indexFile: string
  /** Boot of the kernel: after a power cut an index is made again. */
  readonly bootId: string
  readonly program: Pick<ContentProgram, 'publish'>
  /** Reads stored blobs again. */
  readonly verify: ContentProgram['verify']
  /** Runs sync(1). */
  readonly runner: CommandRunner
  readonly definitions: ContentDefinitions | undefined
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

/** The store with the verbs that only the room of the content uses. */
export interface OpenStore extends ContentStore {
  /** After `open`. A damaged index is replaced, so keep no reference over an `await`. */
  index(): ContentIndex
  readonly paths: ContentFolder
  readonly space: ContentStore['space'] & { read(): Promise<FileSystemRoom> }
  /** After `open`. */
  pins(): Pins
  /** Whether every record could be read; while not, nothing is removed. */
  isComplete(): boolean
  /** Whether the last use of the folder did not fail; true before `open`. */
  isUsable(): boolean
  /** Whether the definitions were notified of the bundles since the start. */
  isAnnounced(): boolean
  /** Sums of the blobs; undefined before `open`. */
  totals(): Totals | undefined
  /**
   * Removes a bundle, and the blobs that no other bundle names. Uploads keep their linked blobs.
   * @param check throws an AppError if the bundle may not be removed; the bundle is published while it runs
   * @returns the bundle; undefined if there is none
   */
  remove(uid: string, check: (bundle: IndexedBundle) => void): Promise<IndexedBundle | undefined>
  /** Runs `work` while nothing is published or removed. */
  whileUnchanged<T>(work: () => Promise<T>): Promise<T>
  /**
   * Uses the folder again if its last use failed, and writes to it, so that the store is usable as soon as the disk can be written.
   * @throws AppError why it still cannot be used
   */
  recover(): Promise<void>
  /** Removes orphans, and notes blobs that are missing; waits until nothing is published or removed. */
  sweep(): Promise<void>
  /** Moves damaged blobs out of the store. */
  setAside(hexes: readonly string[]): Promise<void>
  /** Waits for the change under way. @throws AppError NotReady from then on, from every verb that changes something */
  close(): Promise<void>
}

/** Describes a store; `open` opens it. */
export function createContentStore(options: StoreOptions): OpenStore {
  const { root, requirePlace, indexFile, bootId, definitions, clock, log } = options
  const folder = contentFolder(root)
  let index: ContentIndex | undefined
  const space = createContentSpace(root, options.reserve)
  const lock = createLock()
  const failed = unavailable(log, root)
  let pins: Pins | undefined
  let totals: Totals | undefined
  let isComplete = true
  let wasOpened = false
  /** Whether folder and index agree, as far as is known; if not, they are brought together before the next change. */
  let areInStep = false
  /** The folder of the records as it was after the last change. */
  let seen = ''
  /** Changes that run or wait for their turn. */
  let changes = 0
  let isUsable = true
  let isClosed = false
  const announcement = createAnnouncement({ folder, bundles: () => index?.list(), definitions, log })
  const publication = createPublication({
    ...options,
    folder,
    index: current,
    undo,
    async onPublished(indexDigest) {
      await resolveAside(indexDigest)
      await tell()
    },
  })

  const reread = createReread({
    folder,
    index: current,
    verify: options.verify,
    setAside: (hexes) => announced(() => setAsideNow(hexes)),
  })

  async function open(): Promise<void> {
    // While the folder is being changed, it was checked before.
    if (!wasOpened || (changes === 0 && (await look()) !== seen)) await announced(async () => undefined)
  }

  /** Differs when another disk is mounted at the folder, and when a record is added or removed. */
  async function look(): Promise<string> {
    const found = await stat(folder.bundles).catch(missing)
    return found ? `${found.dev}-${found.ino}-${found.mtimeMs}` : ''
  }

  /** Runs `work` on an open store while nothing else changes it, and waits until the definitions follow. @throws AppError */
  function exclusively<T>(work: () => Promise<T>): Promise<T> {
    return locked(work).finally(announcement.announce)
  }

  /** The same, without that wait: the definitions know the published bundles, and may examine them for minutes. */
  function announced<T>(work: () => Promise<T>): Promise<T> {
    return locked(work).finally(() => void announcement.announce())
  }

  /** The same, for a caller that announces its changes, or changes that the opening has found. */
  function locked<T>(work: () => Promise<T>): Promise<T> {
    changes += 1
    return lock(async () => {
      try {
        if (isClosed) throw stoppingError()
        if (!areInStep || (await look()) !== seen) await openNow()
        const result = await work().finally(async () => (seen = await look()))
        isUsable = true
        return result
      } catch (error) {
        if (!(error instanceof AppError)) areInStep = isUsable = false
        if (isDamagedIndex(error)) dropIndex()
        return failed(error)
      } finally {
        changes -= 1
      }
    })
  }

  function dropIndex(): void {
    index?.database.close()
    index = undefined
    wasOpened = false
    removeIndexDatabase(indexFile)
  }

  function current(): ContentIndex {
    if (!index) throw new Error('the content is not open')
    return index
  }

  async function openNow(): Promise<void> {
    await requirePlace()
    await requireOwnFolder(folder)
    await makeContentFolder(folder)
    index ??= createContentIndex(openIndexDatabase(indexFile, bootId))
    pins = await openPins(folder.pinsFile, log)
    isComplete = await reconcile({ folder, index: current(), log })
    const interrupted = await findInterrupted()
    await sweepNow(interrupted && join(interrupted.folder, 'blobs'))
    if (interrupted) await unlink(join(interrupted.folder, markerName))
    areInStep = true
    wasOpened = true
    await tell()
  }

  /** The upload whose publication a killed daemon did not finish. There is at most one. */
  async function findInterrupted(): Promise<StagedUpload | undefined> {
    for (const upload of await listFolders()) {
      // Its record was renamed, so it is published.
      if (current().find(upload.uid)) await removeUpload(upload)
      else if (await stat(join(upload.folder, markerName)).catch(missing)) return upload
    }
    return undefined
  }

  async function listFolders(): Promise<StagedUpload[]> {
    const entries = await readdir(folder.uploads, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => ({ uid: name, folder: join(folder.uploads, name) }))
  }

  async function sweepNow(into?: string): Promise<void> {
    const swept = await sweepBlobs({
      folder,
      index: current(),
      into,
      areOrphansKept: !isComplete,
      now: clock.now(),
    })
    if (swept.orphans > 0)
      log.info(
        { blobs: swept.orphans },
        into === undefined
          ? 'blobs that no bundle names were removed'
          : 'a bundle was not published; its blobs are in its upload again',
      )
    reportDamage(swept.missing, 'is missing')
  }

  function reportDamage(hexes: readonly string[], what: string): void {
    const [first] = hexes
    if (first !== undefined)
      log.error(
        { digest: `sha256:${first}`, blobs: hexes.length },
        `a blob of the content ${what} and is not served; upload a bundle that has it; see dmesg --level=err and ${documentPath('operations.md')}, "Content"`,
      )
  }

  /** After each change: notifies other readers of the content. An error does not undo the change. */
  async function tell(): Promise<void> {
    totals = current().totals()
    await writeIndexFile(folder, current().database).catch((error: unknown) =>
      log.warn({ err: error, file: folder.indexFile }, 'index.json of the content could not be written'),
    )
    announcement.stale()
  }

  /** As after a kill. The disk may be another one meanwhile, so the records are read again before blobs are taken out. */
  async function undo(upload: StagedUpload): Promise<void> {
    try {
      await openNow()
    } catch (error) {
      // The rest is undone by the next opening, before anything else is published.
      areInStep = false
      log.warn({ err: error, upload: upload.uid }, 'a publication that failed could not be undone yet')
    }
  }

  /** Removes damaged records of the bundle that is now published again. */
  async function resolveAside(indexDigest: string): Promise<void> {
    if (isComplete) return
    const names = await readdir(folder.bundles)
    for (const name of names.filter(isAside)) {
      const file = join(folder.bundles, name)
      const [first = ''] = (await readFile(file, 'latin1')).slice(0, 4_096).split('\n')
      if (first.includes(`"indexDigest":"${indexDigest}"`)) await unlink(file)
    }
    isComplete = await reconcile({ folder, index: current(), log })
  }

  async function removeNow(uid: string, check: (bundle: IndexedBundle) => void) {
    const bundle = current().find(uid)
    if (!bundle) return undefined
    check(bundle)
    const { id } = bundle
    await unlink(recordFile(folder, bundle.uid)).catch(missing)
    await syncFolder(folder.bundles)
    try {
      current().hide(id)
    } catch (error) {
      // On a full disk the files have to go before SQLite can write.
      if (!isUnwritable(error)) throw error
    }
    if (isComplete) await removeBlobs(id)
    await current().remove(id)
    await tell()
    return bundle
  }

  async function removeBlobs(bundle: number): Promise<void> {
    for (let last = 0; ;) {
      const some = current().ownBlobsAfter(bundle, last, 200)
      await Promise.all(
        some.map(({ hex, isDamaged }) => removeBlob(join(isDamaged ? folder.damaged : folder.blobs, hex))),
      )
      last = some.at(-1)?.id ?? last
      if (some.length === 0) return
    }
  }

  async function setAsideNow(hexes: readonly string[]): Promise<void> {
    const known = hexes.filter((hex) => current().blob(hex))
    for (const hex of known) {
      const aside = join(folder.damaged, hex)
      // Where nothing is left of the blob, an empty file says that it is damaged.
      await rename(join(folder.blobs, hex), aside).catch((error: unknown) => {
        missing(error as NodeJS.ErrnoException)
        return writeFile(aside, '', { mode: 0o600 })
      })
      current().setDamaged(hex, clock.now())
    }
    await syncFolder(folder.damaged)
    reportDamage(known, 'is damaged')
    if (known.length > 0) await tell()
  }

  return {
    folder: root,
    blobs: folder.blobs,
    paths: folder,
    index: current,
    space,
    open,
    pins() {
      if (!pins) throw new Error('the content is not open')
      return pins
    },
    isComplete: () => isComplete,
    totals: () => totals,
    isUsable: () => isUsable,
    isAnnounced: announcement.isMade,
    async stage() {
      await open()
      const uid = randomUUID()
      const upload = { uid, folder: join(folder.uploads, uid) }
      try {
        for (const each of [upload.folder, join(upload.folder, 'blobs'), join(upload.folder, 'parts')])
          await mkdir(each, { mode: 0o700 })
      } catch (error) {
        await removeUpload(upload).catch(() => undefined)
        return failed(error)
      }
      return upload
    },
    async listStaged() {
      await open()
      return listFolders()
    },
    removeStaged: removeUpload,
    findBundle: (uid) => current().find(uid),
    findBundleByIndex: (indexDigest) => current().findByIndex(indexDigest),
    isWhole: ({ uid }) => {
      const id = current().idOf(uid)
      return id !== undefined && current().damaged(id).length === 0
    },
    async rereadBundle({ uid }, signal) {
      await open()
      const id = current().idOf(uid)
      if (id !== undefined) await reread.ofBundle(id, signal).catch(failed)
    },
    hasBlob: (digest) => current().hasBlob(hexOf(digest)),
    async linkBlobs(upload, digests) {
      await open()
      const known = digests.filter((digest) => current().hasBlob(hexOf(digest)))
      return linkBlobs(folder, upload, known)
    },
    async dropDamaged(upload) {
      await open()
      return dropDamaged(folder, upload)
    },
    async publish(upload, order) {
      for (;;) {
        await open()
        const prepared = await publication.prepare(upload, order).catch(failed)
        try {
          await reread.ofUpload(upload, order.signal).catch(failed)
          const published = await locked(async () => {
            await dropDamaged(folder, upload)
            return publication.publish(upload, order, prepared !== undefined)
          })
          if (published?.isNew) await prepared?.place()
          // The bundle may have been removed again before its definition was in the slot.
          announcement.stale()
          if (published) return published
        } finally {
          await prepared?.discard()
          await announcement.announce()
        }
      }
    },
    remove: (uid, check) => exclusively(() => removeNow(uid, check)),
    whileUnchanged: announced,
    async recover() {
      if (isUsable) return
      await exclusively(() => requireWritable(folder))
      log.info({ folder: root }, 'the content can be used again')
    },
    sweep: () => exclusively(() => sweepNow()),
    setAside: (hexes) => exclusively(() => setAsideNow(hexes)),
    async close() {
      await lock(async () => {
        isClosed = true
        index?.database.close()
        index = undefined
      })
      await announcement.announce()
    },
  }
}

// Primary result codes of https://www.sqlite.org/rescode.html: SQLITE_CORRUPT, SQLITE_NOTADB
const isDamagedIndex = (error: unknown) =>
  [11, 26].includes(((error as { errcode?: number }).errcode ?? 0) & 0xff)
