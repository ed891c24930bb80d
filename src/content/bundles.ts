import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { listInMemory } from '../lists/memory.ts'
import type { Page } from '../lists/page.ts'
import type { ListQuery } from '../lists/query.ts'
import { contentErrors } from './codes.ts'
import { bundleList, bundleView, createBundleStates } from './reads/bundle-list.ts'
import type { BundleStateOptions } from './reads/bundle-list.ts'
import { listEntries } from './reads/entry-list.ts'
import { createUploadBytes } from './reads/upload-bytes.ts'
import { detailsOf, readUsage } from './reads/usage.ts'
import type { Bundle, BundleDeletion, BundleEntry, ContentUsage, UploadedContentDetails } from './schemas.ts'
import type { IndexedBundle } from './store/content-index.ts'
import { planDeletion } from './store/find.ts'

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
   * @returns what was removed. @throws AppError NotFound, ContentInUse
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
