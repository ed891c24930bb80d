import { parseImageName } from '../format/image-name.ts'
import type { SQLInputValue } from 'node:sqlite'
import type { Referrer } from '../format/record.ts'
import { pathOfName, publishedEntries, type IndexDatabase } from '../store/index-database.ts'

/** Names of the content under which a repository of a request is searched, the first one first. */
export interface Repository {
  /** Whole names of images: `docker.io/library/busybox`. */
  readonly names: readonly string[]
  /** The name of an image without its host, on any host. */
  readonly path?: string
  /** Title of a chart or another artifact that has no name of an image. */
  readonly title?: string
}

// A host and a path; image-name.ts bounds each.
const longestName = 512
const hostForm = /^[^/]*[a-z0-9\]][.:][^/]*\/|^localhost\//i
// The name of a repository in a path has no colon, so clients write a port behind _, as they are configured.
const portForm = /^([^/]+)_(\d{1,5})(?=\/)/

/**
 * The repository that the name in a path means. Clients ask for one image in three ways:
 * - containerd sends the host of the image apart: `library/busybox?ns=docker.io`. Only an image of that host is meant.
 * - podman and skopeo put it in front of the path, as they are configured: `docker.io/library/busybox`, `registry.example_5000/app`.
 * - Without a host (`library/busybox`) the image of docker.io is meant, or else one of any host; charts have no host either.
 * @returns undefined for text that is not a name
 */
export function parseRepository(name: string, ns: string | undefined): Repository | undefined {
  if (name.length > longestName) return undefined
  if (ns !== undefined && ns !== '') {
    const named = !ns.includes('/') && hostForm.test(`${ns}/`) ? nameOf(`${ns}/${name}`) : undefined
    return named === undefined ? undefined : { names: [named] }
  }
  const onHost = hostForm.test(name) ? nameOf(name) : undefined
  const onDefaultHost = nameOf(`docker.io/${name}`)
  const onPort = portForm.test(name) ? nameOf(name.replace(portForm, '$1:$2')) : undefined
  const names = [onPort, onHost, onDefaultHost].filter((each) => each !== undefined)
  if (names.length === 0) return undefined
  return onDefaultHost === undefined ? { names } : { names, path: name, title: name }
}

/** The whole name of a repository; undefined for text that is not one, or that has a tag or a digest. */
function nameOf(text: string): string | undefined {
  // A colon after the last slash would begin a tag.
  if (text.includes('@') || text.lastIndexOf(':') > text.lastIndexOf('/')) return undefined
  const parsed = parseImageName(text)
  return 'problem' in parsed ? undefined : parsed.name
}

// Queries of the registry to the index. Only published bundles count.

/** A blob of a published bundle. */
export interface PulledBlob {
  readonly hex: string
  readonly sizeBytes: number
  readonly isDamaged: boolean
  /** Media type of an index or a manifest. */
  readonly mediaType: string | undefined
}

/** An index or manifest that belongs to another one. */
export interface ReferringBlob extends PulledBlob, Pick<Referrer, 'artifactType'> {
  /** JSON. */
  readonly annotations: string | undefined
}

const isNamed = `EXISTS (SELECT 1 FROM bundle_blob AS use JOIN bundle ON bundle.id = use.bundle
  WHERE use.blob = blob.id AND is_published = 1)`
const blobColumns =
  'hex, size_bytes AS sizeBytes, damaged_at IS NOT NULL AS isDamaged, document_type AS mediaType'

interface BlobRow {
  readonly hex: string
  readonly sizeBytes: number
  readonly isDamaged: number
  readonly mediaType: string | null
}

export function findBlob({ sql }: IndexDatabase, hex: string): PulledBlob | undefined {
  const row = sql.prepare(`SELECT ${blobColumns} FROM blob WHERE hex = ? AND ${isNamed}`).get(hex)
  return row === undefined ? undefined : blobOf(row as unknown as BlobRow)
}

const blobOf = ({ isDamaged, mediaType, ...row }: BlobRow): PulledBlob => ({
  hex: row.hex,
  sizeBytes: row.sizeBytes,
  isDamaged: isDamaged === 1,
  mediaType: mediaType ?? undefined,
})

/** One way in which an entry may be called by the name of a repository. */
interface Way {
  readonly condition: string
  readonly value: string
  /** SQL of its tag. */
  readonly tag: string
}

const byName = { condition: 'entry.name = ?', tag: 'entry.tag' }
const byPath = { condition: `entry.name <> '' AND ${pathOfName} = ?`, tag: 'entry.tag' }
// Helm writes a version with _ for +, which tags may not contain.
const byTitle = {
  condition: "title <> '' AND title = ? AND entry.name = ''",
  tag: "CASE version WHEN '' THEN 'latest' ELSE replace(version, '+', '_') END",
}

const waysOf = ({ names, path, title }: Repository): readonly Way[] => [
  ...names.map((value) => ({ ...byName, value })),
  ...(path === undefined ? [] : [{ ...byPath, value: path }]),
  ...(title === undefined ? [] : [{ ...byTitle, value: title }]),
]

/** Digest of the entry to which a tag leads. Of the bundles with the same tag, the newest has it. */
export function findTagged({ sql }: IndexDatabase, repository: Repository, tag: string): string | undefined {
  for (const way of waysOf(repository)) {
    const row = sql
      .prepare(
        `SELECT digest ${publishedEntries} AND ${way.condition} AND ${way.tag} = ?
        ORDER BY publication DESC, uid DESC, entry.id DESC LIMIT 1`,
      )
      .get(way.value, tag)
    if (row) return String(row.digest)
  }
  return undefined
}

export const hasRepository = ({ sql }: IndexDatabase, repository: Repository): boolean =>
  waysOf(repository).some(
    ({ condition, value }) =>
      sql.prepare(`SELECT 1 ${publishedEntries} AND ${condition} LIMIT 1`).get(value) !== undefined,
  )

/** Tags of a repository in the order of their characters. @param after the last one of the page before */
export function listTags(
  { sql }: IndexDatabase,
  repository: Repository,
  after: string,
  limit: number,
): string[] {
  const ways = waysOf(repository)
  // Each with a limit of its own: a name with 100,000 tags is read by the page.
  const tags = ways.map(
    ({ condition, tag }) => `SELECT tag FROM (
      SELECT DISTINCT ${tag} AS tag ${publishedEntries} AND ${condition} AND ${tag} > ? ORDER BY 1 LIMIT ?)`,
  )
  const values: SQLInputValue[] = ways.flatMap(({ value }) => [value, after, limit])
  const rows = sql.prepare(`${tags.join(' UNION ')} ORDER BY tag LIMIT ?`).all(...values, limit)
  return rows.map(({ tag }) => String(tag))
}

// Titles that a path can have as the name of a repository; the title of a file may be anything.
const isTitleCallable = `title NOT GLOB '*[^a-z0-9._/-]*' AND title GLOB '[a-z0-9]*' AND title GLOB '*[a-z0-9]'
  AND title NOT GLOB '*[./][./_-]*' AND title NOT GLOB '*[_-][./]*'`

/** Names of all entries, and titles by which one can be pulled, in the order of their characters; read in a thread. */
export async function listRepositories(
  { read }: IndexDatabase,
  after: string,
  limit: number,
): Promise<string[]> {
  const [rows = []] = await read([
    {
      sql: `SELECT DISTINCT called AS name FROM (
          SELECT CASE entry.name WHEN '' THEN title ELSE entry.name END AS called ${publishedEntries}
          AND (entry.name <> '' OR (${isTitleCallable})))
        WHERE called > ? ORDER BY called LIMIT ?`,
      values: [after, limit],
    },
  ])
  return rows.map(({ name }) => String(name))
}

/**
 * Referrers of an index or manifest, in the order of the digests, one after the other, since their annotations may be large.
 * @param after hex of the last one of the page before
 */
export function* findReferrers(
  { sql }: IndexDatabase,
  subject: string,
  after: string,
): Generator<ReferringBlob> {
  const rows = sql
    .prepare(
      `SELECT ${blobColumns}, artifact_type AS artifactType, annotations FROM blob
      WHERE subject = ? AND hex > ? AND damaged_at IS NULL AND ${isNamed} ORDER BY hex`,
    )
    .iterate(subject, after)
  for (const each of rows) {
    const row = each as unknown as BlobRow & { artifactType: string | null; annotations: string | null }
    yield {
      ...blobOf(row),
      ...(row.artifactType === null ? {} : { artifactType: row.artifactType }),
      annotations: row.annotations ?? undefined,
    }
  }
}
