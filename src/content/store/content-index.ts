import type { Entry } from '../format/entry.ts'
import { createRecordParser, RecordDamaged, type RecordedBlob } from '../format/record.ts'
import type { Bundle } from './content-store.ts'
import { hexOf } from './folder.ts'
import type { IndexDatabase } from './index-database.ts'
import { createSlices } from '../../base/slices.ts'
import { openRegularFile } from '../../system/regular-file.ts'

/** The row of a bundle, published or not. */
export interface BundleRow {
  readonly id: number
  readonly uid: string
  /** Size and time of the record that was read into the index. */
  readonly mark: string
  readonly isPublished: number
}

/** A published bundle, and its counts in the index. */
export interface IndexedBundle extends Bundle {
  readonly id: number
  readonly publication: number
  /** Entries that are images. */
  readonly images: number
  /** Architectures of its carried images and programs. */
  readonly architectures: readonly string[]
}

/** A blob that the index knows. */
export interface KnownBlob {
  readonly id: number
  readonly hex: string
  readonly sizeBytes: number
  /** 1 or 0. */
  readonly isDamaged: number
}

/** Totals of the store. */
export interface Totals {
  /** Blobs, damaged ones too. */
  readonly blobs: number
  readonly bytes: number
  readonly damagedBlobs: number
  readonly damagedBytes: number
}

/** Content of the records in a form that can be searched. Digests of blobs are hex. */
export interface ContentIndex {
  readonly database: IndexDatabase
  /**
   * Adds a bundle by its record, unseen by readers until `show` or `replace`. If it throws, its rows have to be removed.
   * @param uid of its row
   * @param bundleUid uid that its record must have
   * @throws RecordDamaged, and the errors of the file and of SQLite
   */
  add(uid: string, record: string, bundleUid?: string): Promise<number>
  /** Makes an added bundle a published one. @param mark of its record */
  show(id: number, mark: string): void
  /** Shows an added bundle in the place of a published one, whose uid it gets. The rows of that one are left for `remove`. */
  replace(published: BundleRow['id'], id: number, mark: string): void
  /** Takes it from the readers, before its rows are removed. */
  hide(id: number): void
  /** Removes the rows of a bundle, and of blobs that no other bundle names. */
  remove(id: number): Promise<void>
  rows(): BundleRow[]
  idOf(uid: string): number | undefined
  /** Published bundles, the newest first. */
  list(): IndexedBundle[]
  /** The highest number of a publication; 0 without a bundle. */
  lastPublication(): number
  find(uid: string): IndexedBundle | undefined
  findByIndex(indexDigest: string): IndexedBundle | undefined
  /** The blob, if any bundle names it, published or not. */
  blob(hex: string): KnownBlob | undefined
  /** Whether a published bundle names the blob and it is not damaged. */
  hasBlob(hex: string): boolean
  /** The highest id of a blob; 0 without one. */
  lastBlob(): number
  /** The next blobs in the order of their ids. */
  blobsAfter(id: number, limit: number): KnownBlob[]
  /** The next blobs of a bundle, in the order of their ids. */
  blobsOfAfter(bundle: number, id: number, limit: number): KnownBlob[]
  /** Whether the bundle names the blob. */
  names(bundle: number, hex: string): boolean
  /** The next blobs of a bundle that no other bundle names, in the order of their ids. */
  ownBlobsAfter(bundle: number, id: number, limit: number): KnownBlob[]
  /** The next blobs that are not damaged, in the order of their digests. */
  wholeBlobsAfter(hex: string, limit: number): KnownBlob[]
  /** @param at milliseconds since 1970; undefined for a blob that is whole again */
  setDamaged(hex: string, at: number | undefined): void
  /** Hex of the damaged blobs of a bundle. */
  damaged(bundle: number): string[]
  /** Counts of damaged blobs, by the id of each published bundle that has any. */
  damagedCounts(): ReadonlyMap<number, number>
  /** Sums of the blobs; some 10 ms for 100,000. */
  totals(): Totals
}

const bundleColumns = 'id, facts, image_count AS images, architectures'
const blobColumns = 'id, hex, size_bytes AS sizeBytes, damaged_at IS NOT NULL AS isDamaged'
const stepRows = 250
// Some 400 lines of blobs, whose rows take a few milliseconds.
const pieceBytes = 32_768

export function createContentIndex(database: IndexDatabase): ContentIndex {
  const { sql, transaction } = database
  const insertBundle = sql.prepare(
    "INSERT INTO bundle VALUES (NULL, ?, '', 0, '', '', 0, 0, 0, '[]') RETURNING id",
  )
  const updateBundle = sql.prepare(`UPDATE bundle
    SET facts = ?, index_digest = ?, published_at = ?, publication = ?, image_count = ?, architectures = ? WHERE id = ?`)
  const insertEntry = sql.prepare('INSERT INTO entry VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const insertBlob = sql.prepare('INSERT OR IGNORE INTO blob (hex, size_bytes) VALUES (?, ?)')
  // A blob of one bundle may be a document of another one.
  const insertDocument =
    sql.prepare(`INSERT INTO blob (hex, size_bytes, document_type, subject, artifact_type, annotations)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (hex) DO UPDATE SET document_type = excluded.document_type,
      subject = excluded.subject, artifact_type = excluded.artifact_type, annotations = excluded.annotations
    WHERE document_type IS NULL`)
  const insertUse = sql.prepare(
    'INSERT OR IGNORE INTO bundle_blob (bundle, blob) SELECT ?, id FROM blob WHERE hex = ?',
  )
  const setPublished = sql.prepare('UPDATE bundle SET is_published = 1, mark = ? WHERE id = ?')
  const renameReplaced = sql.prepare(
    "UPDATE bundle SET is_published = 0, uid = uid || ' replaced' WHERE id = ? RETURNING substr(uid, 1, length(uid) - 9) AS uid",
  )
  const setUid = sql.prepare('UPDATE bundle SET uid = ? WHERE id = ?')
  const hideRow = sql.prepare('UPDATE bundle SET is_published = 0 WHERE id = ?')
  const someUses = sql.prepare('SELECT blob FROM bundle_blob WHERE bundle = ? ORDER BY blob LIMIT ?')
  const deleteUse = sql.prepare('DELETE FROM bundle_blob WHERE bundle = ? AND blob = ?')
  const deleteBlob = sql.prepare(
    'DELETE FROM blob WHERE id = ? AND NOT EXISTS (SELECT 1 FROM bundle_blob WHERE blob = blob.id)',
  )
  const deleteEntries = sql.prepare(
    'DELETE FROM entry WHERE id IN (SELECT id FROM entry WHERE bundle = ? LIMIT ?)',
  )
  const deleteBundle = sql.prepare('DELETE FROM bundle WHERE id = ?')
  const allRows = sql.prepare('SELECT id, uid, mark, is_published AS isPublished FROM bundle ORDER BY id')
  const published = sql.prepare(
    `SELECT ${bundleColumns} FROM bundle WHERE is_published = 1 ORDER BY publication DESC, uid DESC`,
  )
  const highestPublication = sql.prepare('SELECT coalesce(max(publication), 0) AS publication FROM bundle')
  const byUid = sql.prepare(`SELECT ${bundleColumns} FROM bundle WHERE is_published = 1 AND uid = ?`)
  const byIndex = sql.prepare(
    `SELECT ${bundleColumns} FROM bundle WHERE is_published = 1 AND index_digest = ?`,
  )
  const idByUid = sql.prepare('SELECT id FROM bundle WHERE uid = ?')
  const blobByHex = sql.prepare(`SELECT ${blobColumns} FROM blob WHERE hex = ?`)
  const servedBlob = sql.prepare(`SELECT 1 FROM blob WHERE hex = ? AND damaged_at IS NULL AND EXISTS (
    SELECT 1 FROM bundle_blob AS use JOIN bundle ON bundle.id = use.bundle
    WHERE use.blob = blob.id AND is_published = 1)`)
  const highestBlob = sql.prepare('SELECT coalesce(max(id), 0) AS id FROM blob')
  const nextBlobs = sql.prepare(`SELECT ${blobColumns} FROM blob WHERE id > ? ORDER BY id LIMIT ?`)
  const nextOf = sql.prepare(`SELECT ${blobColumns} FROM bundle_blob AS mine JOIN blob ON blob.id = mine.blob
    WHERE mine.bundle = ? AND mine.blob > ? ORDER BY mine.blob LIMIT ?`)
  const useOf = sql.prepare(
    'SELECT 1 FROM bundle_blob WHERE bundle = ? AND blob = (SELECT id FROM blob WHERE hex = ?)',
  )
  const nextOwn = sql.prepare(`SELECT ${blobColumns} FROM bundle_blob AS mine JOIN blob ON blob.id = mine.blob
    WHERE mine.bundle = ? AND mine.blob > ? AND NOT EXISTS (
      SELECT 1 FROM bundle_blob AS other WHERE other.blob = mine.blob AND other.bundle <> mine.bundle)
    ORDER BY mine.blob LIMIT ?`)
  const nextWhole = sql.prepare(
    `SELECT ${blobColumns} FROM blob WHERE hex > ? AND damaged_at IS NULL ORDER BY hex LIMIT ?`,
  )
  const updateDamaged = sql.prepare('UPDATE blob SET damaged_at = ? WHERE hex = ?')
  const damagedOf = sql.prepare(`SELECT hex FROM blob WHERE damaged_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM bundle_blob AS use WHERE use.blob = blob.id AND use.bundle = ?)`)
  const damagedByBundle = sql.prepare(`SELECT use.bundle AS id, count(*) AS count
    FROM blob JOIN bundle_blob AS use ON use.blob = blob.id WHERE damaged_at IS NOT NULL GROUP BY use.bundle`)

  const sums =
    sql.prepare(`SELECT count(*) AS blobs, coalesce(sum(size_bytes), 0) AS bytes, count(damaged_at) AS damagedBlobs,
    coalesce(sum(size_bytes) FILTER (WHERE damaged_at IS NOT NULL), 0) AS damagedBytes FROM blob`)

  const blobs = (rows: readonly unknown[]) => rows as KnownBlob[]
  const bundleOf = (row: unknown) => (row === undefined ? undefined : toBundle(row as StoredBundle))

  function addEntry(bundle: number, entry: Entry): void {
    const {
      digest,
      kind,
      name = '',
      tag = '',
      title = '',
      version = '',
      mediaType,
      sizeBytes,
      ...more
    } = entry
    insertEntry.run(
      ...[bundle, digest, kind, name, tag, title, version, mediaType, sizeBytes, JSON.stringify(more)],
    )
  }

  function addBlob(bundle: number, [digest, sizeBytes, document]: RecordedBlob): void {
    if (document) {
      const { subject = null, artifactType = null, annotations } = document.referrer ?? {}
      insertDocument.run(
        ...[hexOf(digest), sizeBytes, document.mediaType, subject, artifactType],
        annotations === undefined ? null : JSON.stringify(annotations),
      )
    } else insertBlob.run(hexOf(digest), sizeBytes)
    insertUse.run(bundle, hexOf(digest))
  }

  return {
    database,
    async add(uid, record, bundleUid = uid) {
      const { id } = insertBundle.get(uid) as { id: number }
      let images = 0
      const architectures = new Set<string>()
      let waiting: (() => void)[] = []
      const parser = createRecordParser({
        onEntry(entry) {
          waiting.push(() => addEntry(id, entry))
          if (entry.kind === 'image') images += 1
          if (entry.kind !== 'image' && entry.kind !== 'program') return
          for (const each of entry.platforms) if (each.isCarried) architectures.add(each.architecture)
        },
        onBlob: (blob) => waiting.push(() => addBlob(id, blob)),
      })
      const rest = createSlices()
      const file = await openRegularFile(record)
      const pieces: AsyncIterable<Buffer> = file.createReadStream({ highWaterMark: pieceBytes })
      for await (const piece of pieces) {
        parser.add(piece)
        const lines = waiting
        waiting = []
        transaction(() => lines.forEach((add) => add()))
        await rest()
      }
      const facts = parser.end()
      if (facts.uid !== bundleUid) throw new RecordDamaged(`is the record of ${facts.uid}`)
      updateBundle.run(
        ...[JSON.stringify(facts), facts.indexDigest, facts.publishedAt, publicationOf(facts)],
        ...[images, JSON.stringify([...architectures].sort()), id],
      )
      return id
    },
    show: (id, mark) => void setPublished.run(mark, id),
    replace: (published, id, mark) =>
      transaction(() => {
        const { uid } = renameReplaced.get(published) as { uid: string }
        setUid.run(uid, id)
        setPublished.run(mark, id)
      }),
    hide: (id) => void hideRow.run(id),
    async remove(id) {
      const rest = createSlices()
      for (;;) {
        const uses = someUses.all(id, stepRows) as { blob: number }[]
        transaction(() => {
          for (const { blob } of uses) deleteUse.run(id, blob)
          for (const { blob } of uses) deleteBlob.run(blob)
        })
        if (uses.length < stepRows) break
        await rest()
      }
      while (deleteEntries.run(id, stepRows).changes > 0) await rest()
      deleteBundle.run(id)
    },
    rows: () => allRows.all() as unknown as BundleRow[],
    idOf: (uid) => (idByUid.get(uid) as { id: number } | undefined)?.id,
    list: () => (published.all() as unknown as StoredBundle[]).map(toBundle),
    lastPublication: () => (highestPublication.get() as { publication: number }).publication,
    find: (uid) => bundleOf(byUid.get(uid)),
    findByIndex: (digest) => bundleOf(byIndex.get(digest)),
    blob: (hex) => blobByHex.get(hex) as KnownBlob | undefined,
    hasBlob: (hex) => servedBlob.get(hex) !== undefined,
    lastBlob: () => (highestBlob.get() as { id: number }).id,
    blobsAfter: (id, limit) => blobs(nextBlobs.all(id, limit)),
    blobsOfAfter: (bundle, id, limit) => blobs(nextOf.all(bundle, id, limit)),
    names: (bundle, hex) => useOf.get(bundle, hex) !== undefined,
    ownBlobsAfter: (bundle, id, limit) => blobs(nextOwn.all(bundle, id, limit)),
    wholeBlobsAfter: (hex, limit) => blobs(nextWhole.all(hex, limit)),
    setDamaged: (hex, at) => void updateDamaged.run(at ?? null, hex),
    damaged: (bundle) => (damagedOf.all(bundle) as { hex: string }[]).map(({ hex }) => hex),
    totals: () => sums.get() as unknown as Totals,
    damagedCounts: () =>
      new Map((damagedByBundle.all() as { id: number; count: number }[]).map(({ id, count }) => [id, count])),
  }
}

interface StoredBundle {
  readonly id: number
  readonly facts: string
  readonly images: number
  readonly architectures: string
}

function toBundle({ id, facts: text, images, architectures }: StoredBundle): IndexedBundle {
  const facts = JSON.parse(text) as Bundle
  const publication = publicationOf(facts)
  return { ...facts, id, publication, images, architectures: JSON.parse(architectures) as string[] }
}

const publicationOf = ({ publication, publishedAt }: Bundle) => publication ?? publishedAt
