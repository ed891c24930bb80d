import { scopeCountsOf, createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import type { ExaminedPack } from '../../definition/examination/protocol.ts'
import type { Database } from '../../store/database.ts'
import { createFindTaken, type FindTaken } from '../names.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { PackSummary } from './schemas.ts'

/** Packs; the files of each are in the folder `packs/<uid>` of the state. */
export const packTables = `
  CREATE TABLE pack (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    display_name TEXT NOT NULL,
    layer TEXT NOT NULL,
    addon_type TEXT NOT NULL,
    more TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX pack_scope ON pack (project_uid, created_at, uid);
  CREATE UNIQUE INDEX pack_name ON pack (project_uid, name, version);${scopeCountsOf('pack')}
`

/** Fields of a pack that lists show and no query names. */
type More = Pick<ExaminedPack, 'addonSubType' | 'group' | 'eol' | 'cloudTypes' | 'annotations' | 'manifests'>

/** A pack as it is stored; it never changes. */
export interface PackRecord extends ExaminedPack {
  readonly uid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** The packs in the database. */
export interface PackStore {
  find(uid: string): PackRecord | undefined
  /** The packs of this name in a scope. */
  named(projectUid: string, name: string): readonly PackRecord[]
  readonly findTaken: FindTaken
  uids(): readonly string[]
  add(pack: PackRecord): void
  remove(uid: string): void
  /** Bytes of the packs of a scope. */
  bytesIn(projectUid: string): number
  readonly counts: ScopeCounts
}

/** The columns of a pack. */
export const packColumns =
  'uid, project_uid, name, version, display_name, layer, addon_type, more, digest, size_bytes, created_at'

export function createPackStore(database: Database): PackStore {
  const { sql } = database
  const byUid = sql.prepare(`SELECT ${packColumns} FROM pack WHERE uid = ?`)
  const byName = sql.prepare(`SELECT ${packColumns} FROM pack WHERE project_uid = ? AND name = ?`)
  const all = sql.prepare('SELECT uid FROM pack')
  const insert = sql.prepare(`INSERT INTO pack (${packColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const bytes = sql.prepare('SELECT coalesce(sum(size_bytes), 0) AS found FROM pack WHERE project_uid = ?')
  const remove = sql.prepare('DELETE FROM pack WHERE uid = ?')
  return {
    find(uid) {
      const row = byUid.get(uid)
      return row && toPackRecord(row)
    },
    findTaken: createFindTaken(database, 'pack'),
    named: (projectUid, name) => byName.all(projectUid, name).map(toPackRecord),
    uids: () => all.all().map(({ uid }) => String(uid)),
    add(pack) {
      const { addonSubType, group, eol, cloudTypes, annotations, manifests } = pack
      const more: More = { addonSubType, group, eol, cloudTypes, annotations, manifests }
      insert.run(
        ...[pack.uid, pack.projectUid, pack.name, pack.version, pack.displayName, pack.layer],
        ...[pack.addonType, JSON.stringify(more), pack.digest, pack.sizeBytes, pack.createdAt],
      )
    },
    remove: (uid) => void remove.run(uid),
    bytesIn: (projectUid) => Number(bytes.get(projectUid)?.found),
    counts: createScopeCounts(database, 'pack'),
  }
}

/** A row of `packColumns`. */
export function toPackRecord(row: Readonly<Record<string, unknown>>): PackRecord {
  return {
    uid: String(row.uid),
    projectUid: String(row.project_uid),
    name: String(row.name),
    version: String(row.version),
    displayName: String(row.display_name),
    layer: String(row.layer),
    addonType: String(row.addon_type),
    ...(JSON.parse(String(row.more)) as More),
    digest: String(row.digest),
    sizeBytes: Number(row.size_bytes),
    createdAt: Number(row.created_at),
  }
}

/** Queryable fields of the list of packs. */
export const packList: ListResource<SqlField> = {
  name: 'packs',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.name': textColumn('name'),
    'spec.version': textColumn('version'),
    'spec.displayName': { ...textColumn('display_name'), isOrdered: false },
    'spec.layer': { ...textColumn('layer'), isOrdered: false },
    'spec.addonType': { ...textColumn('addon_type'), isOrdered: false },
    'spec.sizeBytes': { type: 'integer', column: 'size_bytes' },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: PackSummary,
}

export const toPackSummary = (pack: PackRecord): PackSummary => ({
  apiVersion: 'v1',
  kind: 'Pack',
  metadata: {
    annotations: {},
    labels: {},
    name: pack.name,
    uid: pack.uid,
    creationTimestamp: formatTime(pack.createdAt),
    lastModifiedTimestamp: formatTime(pack.createdAt),
  },
  spec: {
    addonSubType: pack.addonSubType,
    addonType: pack.addonType,
    cloudTypes: [...pack.cloudTypes],
    displayName: pack.displayName,
    layer: pack.layer,
    name: pack.name,
    annotations: pack.annotations,
    digest: `sha256:${pack.digest}`,
    eol: pack.eol,
    group: pack.group,
    sizeBytes: pack.sizeBytes,
    manifests: pack.manifests.map((name) => ({ kind: 'manifest', name })),
    type: 'spectro',
    version: pack.version,
  },
  status: {},
})
