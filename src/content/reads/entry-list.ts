import type { Page } from '../../lists/page.ts'
import type { ListQuery } from '../../lists/query.ts'
import type { ListResource } from '../../lists/resource.ts'
import { createSqlList } from '../../lists/sql-list.ts'
import type { SqlField, SqlRow } from '../../lists/sql.ts'
import type { Entry } from '../format/entry.ts'
import { BundleEntry } from '../schemas.ts'
import { publishedEntries, type IndexDatabase } from '../store/index-database.ts'
import { hasTag } from '../store/tags.ts'

/** What queries of the entries of a bundle may name. */
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
      ...{ os, architecture, digest, isCarried },
      ...(variant === undefined ? {} : { variant }),
    })),
    ...(createdAt === undefined ? {} : { createdAt: new Date(createdAt).toISOString() }),
    ...(files === undefined
      ? {}
      : { files: files.map(({ title, digest, sizeBytes }) => ({ title, digest, sizeBytes })) }),
  }
}
