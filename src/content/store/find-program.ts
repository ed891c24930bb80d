import { join } from 'node:path'
import type { Entry } from '../format/entry.ts'
import { hexOf } from './folder.ts'
import { publishedEntries } from './index-database.ts'
import type { OpenStore } from './open-store.ts'

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
  /** Of the entry, as `pin` takes it. */
  readonly entryDigest: string
  /** Of the manifest with these files. */
  readonly digest: string
  /** Whether no blob of the bundle is damaged. */
  readonly isWhole: boolean
  readonly files: readonly ProgramFile[]
}

export interface ProgramFile {
  /** Where the file belongs in the program: a relative path, without `..`. */
  readonly title: string
  readonly digest: string
  readonly sizeBytes: number
  /** The file with its content in the store; missing while it is damaged. */
  readonly path: string
  /** 0o755 or 0o644. */
  readonly mode: number
}

interface Row {
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
export function findProgram(store: OpenStore, reference: ProgramReference): FoundProgram | undefined {
  const { name, version, architecture } = reference
  const damaged = store.index().damagedCounts()
  const rows = store
    .index()
    .database.sql.prepare(
      `SELECT bundle.id AS id, bundle.uid AS uid, facts ->> 'name' AS bundleName, digest, more
      ${publishedEntries} AND title <> '' AND title = ? AND version = ? AND kind = 'program'
      ORDER BY publication DESC, uid DESC, entry.id DESC LIMIT 100`,
    )
    .all(name, version) as unknown as Row[]
  const found = rows.flatMap((row) => {
    const described = JSON.parse(row.more) as Pick<Entry, 'platforms' | 'files'>
    const manifest = manifestFor(row.digest, described, architecture)
    return manifest === undefined ? [] : [{ row, manifest, files: described.files ?? [] }]
  })
  const isWhole = ({ row }: { readonly row: Row }) => !damaged.has(row.id)
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
        ...{ title, digest, sizeBytes, path: join(store.blobs, hexOf(digest)) },
        mode: isExecutable ? 0o755 : 0o644,
      })),
  }
}

/**
 * Lists the versions of a program that bundles carry for an architecture, those of the newest bundle first; each once.
 * @param store open
 */
export function programVersions(store: OpenStore, name: string, architecture: string): readonly string[] {
  const rows = store
    .index()
    .database.sql.prepare(
      `SELECT version, digest, more ${publishedEntries} AND title <> '' AND title = ? AND kind = 'program'
      ORDER BY publication DESC, uid DESC, entry.id DESC LIMIT 1000`,
    )
    .all(name) as unknown as (Pick<Row, 'digest' | 'more'> & { readonly version: string })[]
  const fitting = rows.filter(({ digest, more }) => {
    return manifestFor(digest, JSON.parse(more) as Pick<Entry, 'platforms'>, architecture) !== undefined
  })
  return [...new Set(fitting.map(({ version }) => version))]
}

/** The manifest of an entry that has the files for an architecture; that of an entry without platforms is for all. */
function manifestFor(digest: string, { platforms }: Pick<Entry, 'platforms'>, architecture: string) {
  if (platforms.length === 0) return { digest, isOwn: false }
  const platform = platforms.find(
    (each) => each.os === 'linux' && each.architecture === architecture && each.isCarried,
  )
  return platform && { digest: platform.digest, isOwn: true }
}
