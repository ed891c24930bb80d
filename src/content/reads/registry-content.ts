import type { RegistryContentDetails } from '../schemas.ts'
import { publishedEntries, type IndexDatabase } from '../store/index-database.ts'
import { hasTag } from '../store/tags.ts'

// The reply has no pages.
const maximumRows = 10_000

/** Registries that the names of published images are of, in the order of their characters. */
export async function listHosts({ read }: IndexDatabase): Promise<string[]> {
  const sql = `SELECT DISTINCT substr(entry.name, 1, instr(entry.name, '/') - 1) AS host ${publishedEntries}
    AND entry.name <> '' ORDER BY host`
  const [rows = []] = await read([{ sql, values: [] }])
  return rows.map(({ host }) => String(host))
}

// An entry without its tag, which a newer bundle has, is shown if it has no other tag: it can be pulled by its digest.
const details = `
  WITH each AS (SELECT kind, digest, entry.name AS name, title, size_bytes, published_at,
    CASE WHEN entry.name = '' THEN version WHEN ${hasTag} THEN entry.tag ELSE '' END AS label ${publishedEntries}),
  distinct_ones AS (SELECT kind, digest, name, title, label, size_bytes,
    min(min(published_at)) OVER same AS added, max(label) OVER same AS best
    FROM each GROUP BY kind, digest, name, title, label WINDOW same AS (PARTITION BY kind, digest, name, title))
  SELECT kind, digest, name, title, label, size_bytes, added FROM distinct_ones
  WHERE label <> '' OR best = '' ORDER BY added DESC, name, title, label, digest LIMIT ?`

/** What can be pulled from this host, equal entries of several bundles once, the newest first; at most 10,000. */
export async function listRegistryContent({ read }: IndexDatabase): Promise<RegistryContentDetails[]> {
  const [rows = []] = await read([{ sql: details, values: [maximumRows] }])
  return rows.map(({ kind, digest, name, title, label, size_bytes: sizeBytes, added }) => ({
    name: String(name || title || digest),
    version: String(label || digest),
    contentType: kind === 'image' || kind === 'chart' ? kind : 'artifact',
    size: binaryAmount(Number(sizeBytes)),
    dateAdded: new Date(Number(added)).toISOString(),
  }))
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A size as replies about the registry spell it: `12.3 GiB`. */
export function binaryAmount(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 1_023.95 && unit < units.length - 1; unit += 1) value /= 1_024
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit] ?? ''}`
}
