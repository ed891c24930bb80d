import { readFile, realpath, opendir, stat } from 'node:fs/promises'
import type { ContentUsage, UploadedContentDetails, Bundle, BundleDeletion, BundleEntry } from './schemas.ts'
import type { Bundle as StoredBundle } from './store/content-store.ts'
import { missing } from './store/folder.ts'
import { mountOf, parseMountinfo } from '../system/mountinfo.ts'
import type { OpenStore } from './store/open-store.ts'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { listInMemory } from '../lists/memory.ts'
import type { Page } from '../lists/page.ts'
import type { ListQuery } from '../lists/query.ts'
import { contentErrors } from './codes.ts'
import {
  bundleList,
  bundleView,
  createBundleStates,
  type BundleStateOptions,
  listEntries,
} from './reads/lists.ts'
import type { IndexedBundle } from './store/content-index.ts'
import { planDeletion } from './store/find.ts'

/** Disk usage of the content. @param readUploadBytes disk usage of unfinished uploads */
async function readUsage(store: OpenStore, readUploadBytes: () => Promise<number>): Promise<ContentUsage> {
  await store.open()
  const room = await store.space.read()
  const bundles = store.index().list()
  const { bytes = 0, damagedBlobs = 0, damagedBytes = 0 } = store.totals() ?? {}
  const bundleBytes = bundles.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const mount = mountOf(
    parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8')),
    await realpath(store.folder),
  )
  return {
    bundles: bundles.length,
    bundleBytes,
    storedBytes: bytes - damagedBytes,
    sharedBytes: bundleBytes - bytes,
    uploadBytes: await readUploadBytes(),
    damagedBlobs,
    damagedBytes,
    isComplete: store.isComplete(),
    fileSystem: {
      directory: store.folder,
      mountPoint: mount?.mountPoint ?? '',
      type: mount?.fileSystemType ?? '',
      ...room,
      availableBytes: Math.max(0, room.freeBytes - room.reserveBytes - room.reservedBytes),
    },
  }
}

const mebibyte = 1_048_576

/** A published bundle in the form of the reply for the uploaded file. */
function detailsOf(bundle: StoredBundle): UploadedContentDetails {
  const { via, name, fileName, fileSha256, fileSizeBytes, indexDigest, sizeBytes, publishedAt } = bundle
  const isFile = via === 'file'
  const size = isFile ? fileSizeBytes : sizeBytes
  return {
    fileName: isFile ? fileName : name,
    sha256Hash: isFile ? fileSha256 : indexDigest.slice(indexDigest.indexOf(':') + 1),
    sizeInBytes: size,
    sizeInMiB: rounded(size / mebibyte),
    sizeInGiB: rounded(size / mebibyte / 1_024),
    uploadDateTime: new Date(publishedAt).toISOString(),
  }
}

const rounded = (value: number) => Math.round(value * 100) / 100

interface UploadBytesOptions {
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
 * Disk usage of the files of unfinished uploads, without blobs that the store has too: such a blob is a second link of one file. Callers
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

/** Published bundles, as the API shows them. Every verb opens the store first, and may throw ContentUnavailable. */
export interface Bundles {
  list(query: ListQuery): Promise<Page<Bundle>>
  /** @throws AppError NotFound */
  show(uid: string): Promise<Bundle>
  /** @throws AppError NotFound */
  entries(uid: string, query: ListQuery): Promise<Page<BundleEntry>>
  /** @throws AppError NotFound */
  planDeletion(uid: string): Promise<BundleDeletion>
  /**
   * @param signal ends it with its reason, before anything is removed
   * @returns the removed bundle. @throws AppError NotFound, ContentInUse
   */
  remove(uid: string, signal: AbortSignal): Promise<{ readonly uid: string; readonly name: string }>
  usage(): Promise<ContentUsage>
  /** @throws AppError NotFound if nothing was published */
  last(): Promise<UploadedContentDetails>
}

export function createBundles(options: BundleStateOptions): Bundles {
  const { store } = options
  const statesOf = createBundleStates(options)
  const readUploadBytes = createUploadBytes({ folder: store.paths.uploads })
  const stateOf = (bundle: IndexedBundle) => statesOf([bundle])[0]

  async function find(uid: string): Promise<IndexedBundle> {
    await store.open()
    const bundle = store.index().find(uid)
    if (!bundle) throw noBundle(uid)
    return bundle
  }

  return {
    async list(query) {
      await store.open()
      return listInMemory(statesOf(store.index().list()), query, bundleList, bundleView)
    },
    async show(uid) {
      const state = stateOf(await find(uid))
      if (!state) throw noBundle(uid)
      return bundleView(state)
    },
    async entries(uid, query) {
      const { id } = await find(uid)
      return listEntries(store.index().database, query, id)
    },
    async planDeletion(uid) {
      const bundle = await find(uid)
      const plan = await planDeletion(store, bundle)
      return { uid, name: bundle.name, ...plan, holders: [...(stateOf(bundle)?.holders ?? [])] }
    },
    async remove(uid, signal) {
      const removed = await store.remove(uid, (bundle) => {
        // It may have waited for the publication of another bundle.
        signal.throwIfAborted()
        requireUnused(bundle, stateOf(bundle)?.holders ?? [])
      })
      if (!removed) throw noBundle(uid)
      return removed
    },
    usage: () => readUsage(store, readUploadBytes),
    async last() {
      await store.open()
      const [last] = store.index().list()
      if (last) return detailsOf(last)
      throw new AppError(
        generalErrors.NotFound,
        'no content was uploaded to this host; edgehostctl content upload FILE uploads a bundle',
      )
    },
  }
}

const noBundle = (uid: string) =>
  new AppError(
    generalErrors.NotFound,
    `there is no bundle ${uid}; GET /v1/edge-mgmt/content/bundles lists them`,
  )

/** @throws AppError ContentInUse */
function requireUnused({ name }: IndexedBundle, holders: readonly string[]): void {
  if (holders.length > 0)
    throw new AppError(
      contentErrors.ContentInUse,
      `the bundle ${name} is needed by ${holders.join(', ')} and was not deleted`,
      { details: { holders } },
    )
}
