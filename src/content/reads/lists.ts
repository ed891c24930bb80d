import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { Bundle, BundleEntry } from '../schemas.ts'
import type { IndexedBundle } from '../store/content-index.ts'
import { holdersByBundle } from '../store/find.ts'
import type { OpenStore } from '../store/open-store.ts'
import type { Page } from '../../lists/page.ts'
import type { ListQuery } from '../../lists/query.ts'
import { createSqlList } from '../../lists/sql-list.ts'
import type { SqlField, SqlRow } from '../../lists/sql.ts'
import type { Entry } from '../format/entry.ts'
import { publishedEntries, type IndexDatabase, hasTag } from '../store/index-database.ts'

/** A published bundle with its changing state. */
interface BundleState extends IndexedBundle {
  readonly damagedBlobs: number
  readonly holders: readonly string[]
  readonly isForeign: boolean
}

/** Fields for queries of the list of bundles. */
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
  /** Architecture of this host, as OCI names it. */
  readonly architecture: string
  /** Other holders of a bundle; the root hands it in. */
  readonly holdersOf: (bundle: IndexedBundle) => readonly string[]
}

/** Adds their present state to bundles. */
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
    uid,
    name,
    indexDigest,
    publishedAt: new Date(bundle.publishedAt).toISOString(),
    fileName,
    fileSizeBytes,
    sizeBytes,
    blobCount,
    images,
    architectures: [...bundle.architectures],
    isForeign: bundle.isForeign,
    ...(definition === undefined ? {} : { definition }),
    damagedBlobs: bundle.damagedBlobs,
    isPinned: bundle.holders.length > 0,
    holders: [...bundle.holders],
  }
}

/** Fields for queries of the entries of a bundle. */
export const entryList: ListResource<SqlField> = {
  name: 'bundle-entries',
  key: 'number',
  fields: {
    number: { type: 'integer', column: 'number' },
    kind: { type: 'text', column: 'kind' },
    digest: { type: 'text', column: 'digest' },
    name: { type: 'text', column: 'name' },
    tag: { type: 'text', column: 'tag' },
    hasTag: { type: 'boolean', column: 'has_tag' },
    title: { type: 'text', column: 'title' },
    version: { type: 'text', column: 'version' },
    sizeBytes: { type: 'integer', column: 'size_bytes' },
  },
  item: BundleEntry,
}

const table = `(SELECT entry.id AS number, entry.bundle AS bundle, digest, kind, entry.name AS name, entry.tag AS tag,
  title, version, media_type, size_bytes, more, ${hasTag} AS has_tag
  ${publishedEntries})`

/** A page of the entries of a bundle. @param bundle its id in the index */
export function listEntries(
  { sql, read }: IndexDatabase,
  query: ListQuery,
  bundle: number,
): Promise<Page<BundleEntry>> {
  const list = createSqlList<BundleEntry>({
    resource: entryList,
    table,
    columns: 'number, digest, kind, name, tag, title, version, media_type, size_bytes, more, has_tag',
    toItem: viewOf,
    // Never asked for: the list has a condition.
    count: () => 0,
    sql,
    read,
  })
  return list.page(query, { sql: 'bundle = ?', values: [bundle] })
}

function viewOf(row: SqlRow): BundleEntry {
  const { platforms, createdAt, files } = JSON.parse(String(row.more)) as Pick<
    Entry,
    'platforms' | 'createdAt' | 'files'
  >
  const text = (column: string) => String(row[column])
  return {
    number: Number(row.number),
    kind: text('kind'),
    digest: text('digest'),
    mediaType: text('media_type'),
    name: text('name'),
    tag: text('tag'),
    hasTag: row.has_tag === 1,
    title: text('title'),
    version: text('version'),
    sizeBytes: Number(row.size_bytes),
    platforms: platforms.map(({ os, architecture, variant, digest, isCarried }) => ({
      os,
      architecture,
      digest,
      isCarried,
      ...(variant === undefined ? {} : { variant }),
    })),
    ...(createdAt === undefined ? {} : { createdAt: new Date(createdAt).toISOString() }),
    ...(files === undefined
      ? {}
      : { files: files.map(({ title, digest, sizeBytes }) => ({ title, digest, sizeBytes })) }),
  }
}
