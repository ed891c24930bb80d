import type { ExaminedPack } from '../../definition/examination/protocol.ts'
import type { Database } from '../../store/database.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken } from '../taken-names.ts'

/** What lists show of a pack, and no query names. */
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
  /** How much the packs of a scope take. */
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
