import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { Bundle } from '../schemas.ts'
import type { IndexedBundle } from '../store/content-index.ts'
import { holdersByBundle } from '../store/find.ts'
import type { OpenStore } from '../store/open-store.ts'

/** A bundle with what changes while it is published. */
export interface BundleState extends IndexedBundle {
  readonly damagedBlobs: number
  readonly holders: readonly string[]
  readonly isForeign: boolean
}

/** What queries of the list of bundles may name. */
export const bundleList: ListResource<MemoryField<BundleState>> = {
  name: 'bundles',
  key: 'uid',
  fields: {
    uid: { type: 'text', read: ({ uid }) => uid },
    name: { type: 'text', isOrdered: false, read: ({ name }) => name },
    indexDigest: { type: 'text', read: ({ indexDigest }) => indexDigest },
    publishedAt: { type: 'time', read: ({ publishedAt }) => publishedAt },
    sizeBytes: { type: 'integer', read: ({ sizeBytes }) => sizeBytes },
    images: { type: 'integer', read: ({ images }) => images },
    isForeign: { type: 'boolean', read: ({ isForeign }) => isForeign },
    isPinned: { type: 'boolean', read: ({ holders }) => holders.length > 0 },
    damagedBlobs: { type: 'integer', read: ({ damagedBlobs }) => damagedBlobs },
  },
  defaultOrder: [{ path: 'publishedAt', direction: -1 }],
  item: Bundle,
}

export interface BundleStateOptions {
  readonly store: OpenStore
  /** Of this host, as OCI names it. */
  readonly architecture: string
  /** What else needs a bundle; the root hands it in. */
  readonly holdersOf: (bundle: IndexedBundle) => readonly string[]
}

/** Adds to bundles what is known of them now. */
export function createBundleStates({ store, architecture, holdersOf }: BundleStateOptions) {
  return (bundles: readonly IndexedBundle[]): BundleState[] => {
    const damaged = store.index().damagedCounts()
    const pinned = holdersByBundle(store)
    return bundles.map((bundle) => ({
      ...bundle,
      damagedBlobs: damaged.get(bundle.id) ?? 0,
      holders: [...(pinned.get(bundle.id) ?? []), ...holdersOf(bundle)],
      isForeign: bundle.architectures.length > 0 && !bundle.architectures.includes(architecture),
    }))
  }
}

/** A bundle as the API shows it. */
export function bundleView(bundle: BundleState): Bundle {
  const { uid, name, indexDigest, fileName, fileSizeBytes, sizeBytes, blobCount, definition, images } = bundle
  return {
    ...{ uid, name, indexDigest, publishedAt: new Date(bundle.publishedAt).toISOString() },
    ...{ fileName, fileSizeBytes, sizeBytes, blobCount, images, architectures: [...bundle.architectures] },
    isForeign: bundle.isForeign,
    ...(definition === undefined ? {} : { definition }),
    damagedBlobs: bundle.damagedBlobs,
    isPinned: bundle.holders.length > 0,
    holders: [...bundle.holders],
  }
}
