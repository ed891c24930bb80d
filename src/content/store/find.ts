import { join } from 'node:path'
import type { Entry, EntryKind, EntryPlatform } from '../format/entry.ts'
import { hexOf } from './folder.ts'
import { publishedEntries, type IndexDatabase } from './index-database.ts'
import type { OpenStore } from './open-store.ts'
import { readFile } from 'node:fs/promises'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { parseImageName } from '../format/image-name.ts'
import { mediaTypes } from '../format/media-types.ts'
import type { IndexedBundle } from './content-index.ts'

/** A program that is asked for. */
export interface ProgramReference {
  readonly name: string
  readonly version: string
  /** As Go and OCI name it: amd64, arm64. */
  readonly architecture: string
}

/** A program of a published bundle, with the files for one architecture. */
export interface FoundProgram {
  readonly bundle: { readonly uid: string; readonly name: string }
  /** Digest of the entry, as `pin` takes it. */
  readonly entryDigest: string
  /** Digest of the manifest with these files. */
  readonly digest: string
  /** Whether no blob of the bundle is damaged. */
  readonly isWhole: boolean
  readonly files: readonly ProgramFile[]
}

export interface ProgramFile {
  /** Path of the file in the program: relative, without `..`. */
  readonly title: string
  readonly digest: string
  readonly sizeBytes: number
  /** The file with its content in the store; missing while it is damaged. */
  readonly path: string
  /** 0o755 or 0o644. */
  readonly mode: number
}

interface ProgramRow {
  readonly id: number
  readonly uid: string
  readonly bundleName: string
  readonly digest: string
  readonly more: string
}

/**
 * Finds a program. Of several bundles the newest answers that is whole; in it, files for this architecture come before files for all.
 * @param store open
 */
function findProgram(store: OpenStore, reference: ProgramReference): FoundProgram | undefined {
  const { name, version, architecture } = reference
  const damaged = store.index().damagedCounts()
  const rows = store
    .index()
    .database.sql.prepare(
      `SELECT bundle.id AS id, bundle.uid AS uid, facts ->> 'name' AS bundleName, digest, more
      ${publishedEntries} AND title <> '' AND title = ? AND version = ? AND kind = 'program'
      ORDER BY publication DESC, uid DESC, entry.id DESC LIMIT 100`,
    )
    .all(name, version) as unknown as ProgramRow[]
  const found = rows.flatMap((row) => {
    const described = JSON.parse(row.more) as Pick<Entry, 'platforms' | 'files'>
    const manifest = manifestFor(row.digest, described, architecture)
    return manifest === undefined ? [] : [{ row, manifest, files: described.files ?? [] }]
  })
  const isWhole = ({ row }: { readonly row: ProgramRow }) => !damaged.has(row.id)
  const best = found.find(isWhole) ?? found[0]
  if (!best) return undefined
  const own = found.find(({ row, manifest }) => row.id === best.row.id && manifest.isOwn) ?? best
  const { row, manifest, files } = own
  return {
    bundle: { uid: row.uid, name: row.bundleName },
    entryDigest: row.digest,
    digest: manifest.digest,
    isWhole: isWhole(own),
    files: files
      .filter((file) => file.manifest === manifest.digest)
      .map(({ title, digest, sizeBytes, isExecutable = false }) => ({
        title,
        digest,
        sizeBytes,
        path: join(store.blobs, hexOf(digest)),
        mode: isExecutable ? 0o755 : 0o644,
      })),
  }
}

/**
 * Lists the versions of a program that bundles carry for an architecture, the newest bundle's first; each once.
 * @param store open
 */
function programVersions(store: OpenStore, name: string, architecture: string): readonly string[] {
  const rows = store
    .index()
    .database.sql.prepare(
      `SELECT version, digest, more ${publishedEntries} AND title <> '' AND title = ? AND kind = 'program'
      ORDER BY publication DESC, uid DESC, entry.id DESC LIMIT 1000`,
    )
    .all(name) as unknown as (Pick<ProgramRow, 'digest' | 'more'> & { readonly version: string })[]
  const fitting = rows.filter(({ digest, more }) => {
    return manifestFor(digest, JSON.parse(more) as Pick<Entry, 'platforms'>, architecture) !== undefined
  })
  return [...new Set(fitting.map(({ version }) => version))]
}

/** The manifest of an entry that has the files for an architecture; an entry without platforms has one for all. */
function manifestFor(digest: string, { platforms }: Pick<Entry, 'platforms'>, architecture: string) {
  if (platforms.length === 0) return { digest, isOwn: false }
  const platform = platforms.find(
    (each) => each.os === 'linux' && each.architecture === architecture && each.isCarried,
  )
  return platform && { digest: platform.digest, isOwn: true }
}

/** An image, chart, program or file of a published bundle. */
interface Found {
  readonly bundle: { readonly uid: string; readonly name: string }
  readonly kind: EntryKind
  /** Digest of its index or manifest. */
  readonly digest: string
  /** The file with that index or manifest. */
  readonly path: string
  /** Whether no blob of the bundle is damaged. */
  readonly isWhole: boolean
  /** Its platforms, also those that are not carried; empty if nothing names them. */
  readonly platforms: readonly EntryPlatform[]
  /** Of all its blobs that are here, each counted once. */
  readonly sizeBytes: number
}

/** A chart of a published bundle. */
interface FoundChart {
  /** Digest of its manifest. */
  readonly digest: string
  /** The archive, as helm packs it. */
  readonly path: string
}

/** The interface of the content for other rooms. */
export interface ContentAccess {
  /**
   * Finds an entry that a bundle carries. Of several bundles the newest answers that is whole.
   * @param reference the name of an image, as `busybox` or `docker.io/library/busybox:1.36`; the digest of an entry; for another kind
   *   its title, with or without `:version`
   */
  find(reference: string, kind?: EntryKind): Promise<Found | undefined>
  /** Finds the archive of a chart in a bundle that is whole. @param reference its name, with or without `:version` */
  findChart(reference: string): Promise<FoundChart | undefined>
  /** Finds the files of a program for an architecture. */
  findProgram(reference: ProgramReference): Promise<FoundProgram | undefined>
  /** Versions of a program that the bundles carry for an architecture, the newest bundle's first; each once. */
  programVersions(name: string, architecture: string): Promise<readonly string[]>
  /**
   * Keeps bundles from being deleted as long as only they carry a named entry. A holder's new pins replace its old ones.
   * @param holder its name for operators, for example `cluster edge-1`
   * @throws AppError NotFound for the first reference that is not here; the old pins then stay
   */
  pin(holder: string, references: readonly string[]): Promise<void>
  /**
   * Renews the earlier pins of a holder, as after the loss of `pins.json`. An entry that is not here at the moment is pinned too,
   * for when it comes again.
   * @param digests of entries
   */
  renewPins(holder: string, digests: readonly string[]): Promise<void>
  unpin(holder: string): Promise<void>
}

interface Row {
  readonly id: number
  readonly uid: string
  readonly bundleName: string
  readonly kind: EntryKind
  readonly digest: string
  readonly more: string
  readonly sizeBytes: number
}

/** @param store need not be open yet */
export function createContentAccess(store: OpenStore): ContentAccess {
  async function find(reference: string, kind?: EntryKind): Promise<Found | undefined> {
    await store.open()
    const damaged = store.index().damagedCounts()
    const rows = findRows(store.index().database, reference, kind)
    const row = rows.find(({ id }) => !damaged.has(id)) ?? rows[0]
    return (
      row && {
        bundle: { uid: row.uid, name: row.bundleName },
        kind: row.kind,
        digest: row.digest,
        path: join(store.blobs, hexOf(row.digest)),
        isWhole: !damaged.has(row.id),
        platforms: (JSON.parse(row.more) as Pick<Entry, 'platforms'>).platforms,
        sizeBytes: row.sizeBytes,
      }
    )
  }

  return {
    find,
    async findChart(reference) {
      const chart = await find(reference, 'chart')
      // Without its manifest, which was damaged, the archive is not known.
      if (!chart?.isWhole) return undefined
      const manifest = JSON.parse(await readFile(chart.path, 'utf8')) as WrittenManifest
      const archive = manifest.layers?.find(({ mediaType }) => mediaType === mediaTypes.chartContent)
      return archive && { digest: chart.digest, path: join(store.blobs, hexOf(archive.digest)) }
    },
    async findProgram(reference) {
      await store.open()
      return findProgram(store, reference)
    },
    async programVersions(name, architecture) {
      await store.open()
      return programVersions(store, name, architecture)
    },
    pin: (holder, references) =>
      store.whileUnchanged(async () => {
        const digests: string[] = []
        for (const reference of references) {
          const [row] = findRows(store.index().database, reference)
          if (!row)
            throw new AppError(
              generalErrors.NotFound,
              `${reference} is in no bundle of this host; upload a bundle that has it`,
            )
          digests.push(row.digest)
        }
        await store.pins().set(holder, digests)
      }),
    renewPins: (holder, digests) => store.whileUnchanged(() => store.pins().set(holder, digests)),
    unpin: (holder) => store.whileUnchanged(() => store.pins().set(holder, [])),
  }
}

/** The part of a manifest that names the archive of a chart; its form was checked before it was published. */
interface WrittenManifest {
  readonly layers?: readonly { readonly mediaType: string; readonly digest: string }[]
}

/** Entries with this reference, the newest bundle's first. */
function findRows({ sql }: IndexDatabase, reference: string, kind?: EntryKind): Row[] {
  const { condition, values } = conditionOf(reference, kind)
  return sql
    .prepare(
      `SELECT bundle.id AS id, bundle.uid AS uid, facts ->> 'name' AS bundleName, kind, digest, more,
        size_bytes AS sizeBytes ${publishedEntries} AND ${condition} AND (? = '' OR kind = ?)
      ORDER BY publication DESC, uid DESC, entry.id DESC LIMIT 100`,
    )
    .all(...values, kind ?? '', kind ?? '') as unknown as Row[]
}

function conditionOf(
  reference: string,
  kind: EntryKind | undefined,
): { condition: string; values: string[] } {
  if (reference.startsWith('sha256:')) return { condition: 'digest = ?', values: [reference] }
  if (kind !== undefined && kind !== 'image') {
    const colon = reference.lastIndexOf(':')
    if (colon < 0) return { condition: "title <> '' AND title = ?", values: [reference] }
    const values = [reference.slice(0, colon), reference.slice(colon + 1)]
    return { condition: "title <> '' AND title = ? AND version = ?", values }
  }
  const parsed = parseImageName(reference)
  if ('problem' in parsed) return { condition: 'digest = ?', values: [reference] }
  const { name, tag, digest } = parsed
  if (digest !== undefined) return { condition: 'digest = ?', values: [digest] }
  return { condition: 'entry.name = ? AND tag = ?', values: [name, tag ?? ''] }
}

/**
 * The holders of bundles, by pins on entries that no other whole bundle carries.
 * @returns by the id of the bundle
 */
export function holdersByBundle(store: OpenStore): ReadonlyMap<number, readonly string[]> {
  const damaged = store.index().damagedCounts()
  const carriers = store
    .index()
    .database.sql.prepare(`SELECT DISTINCT bundle.id AS id ${publishedEntries} AND digest = ?`)
  const found = new Map<number, Set<string>>()
  for (const [digest, holders] of store.pins().holders()) {
    const ids = (carriers.all(digest) as { id: number }[]).map(({ id }) => id)
    const whole = ids.filter((id) => !damaged.has(id))
    const [only, second] = whole.length > 0 ? whole : ids
    if (only === undefined || second !== undefined) continue
    found.set(only, new Set([...(found.get(only) ?? []), ...holders]))
  }
  return new Map([...found].map(([id, holders]) => [id, [...holders].sort()]))
}

/** Content that a deletion of the bundle removes from the host. */
export async function planDeletion(
  store: OpenStore,
  { id }: IndexedBundle,
): Promise<{ blobs: number; sizeBytes: number; entries: number }> {
  const [[blobs] = [], [entries] = []] = await store.index().database.read([
    {
      sql: `SELECT count(*) AS blobs, coalesce(sum(size_bytes), 0) AS sizeBytes FROM bundle_blob AS mine
        JOIN blob ON blob.id = mine.blob WHERE mine.bundle = ? AND NOT EXISTS (
          SELECT 1 FROM bundle_blob AS other WHERE other.blob = mine.blob AND other.bundle <> mine.bundle)`,
      values: [id],
    },
    {
      sql: `SELECT count(DISTINCT digest) AS entries FROM entry WHERE bundle = ? AND NOT EXISTS (
          SELECT 1 FROM entry AS other WHERE other.digest = entry.digest AND other.bundle <> entry.bundle)`,
      values: [id],
    },
  ])
  return {
    blobs: Number(blobs?.blobs),
    sizeBytes: Number(blobs?.sizeBytes),
    entries: Number(entries?.entries),
  }
}
