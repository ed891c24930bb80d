import { join } from 'node:path'
import { createSlices } from '../../base/slices.ts'
import { readRegularFile } from '../../system/regular-file.ts'
import type { Platform } from '../format/descriptor.ts'
import type { Entry, EntryPlatform } from '../format/entry.ts'
import { bundleLimits } from '../format/refusal.ts'
import { isForeignLayer } from '../format/media-types.ts'
import { hexOf } from '../store/folder.ts'
import { publishedEntries, hasTag } from '../store/index-database.ts'
import type { OpenStore } from '../store/open-store.ts'

/** An image that a published bundle lists. Another bundle, or another name of it, may list it too. */
export interface StoredImage {
  /** Digest of its index or manifest. */
  readonly digest: string
  /** `docker.io/library/busybox`; empty if it can be pulled by digest only. */
  readonly name: string
  readonly tag: string
  /** Whether the tag leads here. */
  readonly hasTag: boolean
  /** Size of its blobs that are here, each counted once. */
  readonly sizeBytes: number
  /** Only carried platforms. */
  readonly platforms: readonly Platform[]
  /** Whether the registry serves all that a pull for the architecture of this host needs: it is here, and nothing of it is damaged. */
  readonly isPullable: boolean
}

/** The images of the store, for a room that lists all images of this host. */
export interface StoredImages {
  /** Differs after each change of the result of `pages`. @throws AppError ContentUnavailable */
  mark(): Promise<string>
  /**
   * All images, some at a time; other work of the event loop runs in between. A change meanwhile may be in it or not.
   * @throws AppError ContentUnavailable
   */
  pages(): AsyncGenerator<readonly StoredImage[]>
}

export interface StoredImagesOptions {
  readonly store: OpenStore
  /** Architecture of this host, as OCI names it. */
  readonly architecture: string
  /** Whether this host has its registry. */
  readonly isServed: boolean
}

interface Row {
  readonly id: number
  readonly bundle: number
  readonly digest: string
  readonly name: string
  readonly tag: string
  readonly sizeBytes: number
  readonly more: string
  readonly hasTag: number
}

const pageRows = 250

const pageSql = `SELECT entry.id AS id, entry.bundle AS bundle, digest, entry.name AS name, entry.tag AS tag,
  size_bytes AS sizeBytes, more, ${hasTag} AS hasTag
  ${publishedEntries} AND kind = 'image' AND entry.id > ? ORDER BY entry.id LIMIT ${pageRows}`
// Changes of this connection since it was opened, and a number that changes with changes of others.
const markSql = 'SELECT total_changes() AS own, (SELECT data_version FROM pragma_data_version) AS others'

export function createStoredImages({ store, architecture, isServed }: StoredImagesOptions): StoredImages {
  const sql = () => store.index().database.sql
  let marked: { readonly sql: unknown; readonly number: number } = { sql: undefined, number: 0 }

  /** Whether a pull by this architecture needs the manifest. */
  const isWanted = (platform: EntryPlatform) => platform.isCarried && platform.architecture === architecture

  /** @returns the digests of the manifests that this host pulls; undefined if there are none for it */
  function wantedManifests(digest: string, platforms: readonly EntryPlatform[]): string[] | undefined {
    if (platforms.length === 0) return [digest]
    const wanted = platforms.filter(isWanted)
    return wanted.length === 0 ? undefined : [...new Set([digest, ...wanted.map((each) => each.digest)])]
  }

  /** Whether nothing of an image of a damaged bundle is damaged. */
  async function isWhole(digests: readonly string[]): Promise<boolean> {
    const isHere = (digest: string) => store.index().hasBlob(hexOf(digest))
    for (const digest of digests) {
      if (!isHere(digest)) return false
      const { config, layers = [] } = await readManifest(join(store.blobs, hexOf(digest)))
      const needed = layers.filter(({ mediaType }) => !isForeignLayer(mediaType))
      if (![...(config ? [config] : []), ...needed].every((each) => isHere(each.digest))) return false
    }
    return true
  }

  return {
    async mark() {
      await store.open()
      if (marked.sql !== sql()) marked = { sql: sql(), number: marked.number + 1 }
      const { own, others } = sql().prepare(markSql).get() as { own: number; others: number }
      return `${marked.number} ${own} ${others}`
    },
    async *pages() {
      await store.open()
      const rest = createSlices()
      for (let last = 0; ;) {
        // The index may be another one after each await.
        const rows = sql().prepare(pageSql).all(last) as unknown as Row[]
        const damaged = store.index().damagedCounts()
        const images: StoredImage[] = []
        for (const row of rows) {
          const { digest, name, tag, sizeBytes } = row
          const { platforms } = JSON.parse(row.more) as Pick<Entry, 'platforms'>
          const wanted = wantedManifests(digest, platforms)
          const isPullable =
            isServed &&
            wanted !== undefined &&
            (!damaged.has(row.bundle) || (await isWhole(wanted).catch(() => false)))
          images.push({
            digest,
            name,
            tag,
            hasTag: row.hasTag === 1,
            sizeBytes,
            isPullable,
            platforms: platforms.filter(({ isCarried }) => isCarried),
          })
          last = row.id
        }
        yield images
        if (rows.length < pageRows) return
        await rest()
      }
    },
  }
}

interface Manifest {
  readonly config?: { readonly digest: string; readonly mediaType: string }
  readonly layers?: readonly { readonly digest: string; readonly mediaType: string }[]
}

/** A document that was examined when its bundle was published; an index names nothing here. */
async function readManifest(file: string): Promise<Manifest> {
  const { bytes } = await readRegularFile(file, bundleLimits.documentBytes)
  return JSON.parse(bytes.toString()) as Manifest
}
