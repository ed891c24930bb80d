import type { ExaminedReference } from '../../definition/examination/protocol.ts'
import type { Database } from '../../store/database.ts'
import type { Variable } from '../schemas/profiles.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken } from '../taken-names.ts'

type Texts = Readonly<Record<string, string>>

/** What lists show of a profile. Times are milliseconds since 1970. */
export interface ProfileHead {
  readonly uid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  /** The folder with its files. */
  readonly filesUid: string
  readonly name: string
  readonly version: string
  readonly type: string
  readonly cloudType: string
  readonly description: string
  /** Those of the export that are texts. */
  readonly labels: Texts
  readonly annotations: Texts
  readonly packs: readonly ExaminedReference[]
  readonly isPublished: boolean
  readonly hasUserMacros: boolean
  readonly createdAt: number
  readonly modifiedAt: number
}

/** A profile as it is stored. */
export interface ProfileRecord extends ProfileHead {
  /** As it was exported, without uid and times; JSON. */
  readonly metadata: string
  /** As they were exported, JSON, sealed; absent where the export has none. */
  readonly variables: Uint8Array | undefined
  /** Secrets masked. */
  readonly shownVariables: readonly Variable[]
}

/** The profiles in the database. */
export interface ProfileStore {
  find(uid: string): ProfileRecord | undefined
  findNamed(projectUid: string, name: string, version: string): ProfileHead | undefined
  /** Of any version. */
  readonly findTaken: FindTaken
  /** All versions of a name in a scope, the oldest first. */
  versions(projectUid: string, name: string): readonly { readonly uid: string; readonly version: string }[]
  /** The profiles that name a pack, of all scopes. */
  withPack(name: string): readonly ProfileHead[]
  filesUids(): readonly { readonly uid: string; readonly filesUid: string }[]
  /** For each profile of a scope its folder, and what its texts take in the database. */
  bytesIn(projectUid: string): readonly { readonly filesUid: string; readonly rowBytes: number }[]
  add(profile: ProfileRecord): void
  /** Replaces its files, its variables, and the time of its last change. */
  replace(profile: ProfileRecord): void
  remove(uid: string): void
  readonly counts: ScopeCounts
}

/** The columns of `ProfileHead`. */
export const headColumns =
  'uid, project_uid, files_uid, name, version, type, cloud_type, description, labels, annotations, packs, is_published, has_user_macros, created_at, modified_at'

export function createProfileStore(database: Database): ProfileStore {
  const { sql, transaction } = database
  const byUid = sql.prepare('SELECT * FROM cluster_profile WHERE uid = ?')
  const byName = sql.prepare(
    `SELECT ${headColumns} FROM cluster_profile WHERE project_uid = ? AND name = ? AND version = ?`,
  )
  const versions = sql.prepare(
    'SELECT uid, version FROM cluster_profile WHERE project_uid = ? AND name = ? ORDER BY created_at, uid',
  )
  const withPack = sql.prepare(
    `SELECT ${headColumns} FROM cluster_profile WHERE uid IN (SELECT profile_uid FROM cluster_profile_pack WHERE name = ?) ORDER BY name, version`,
  )
  const files = sql.prepare('SELECT uid, files_uid FROM cluster_profile')
  const bytesIn = sql.prepare(
    `SELECT files_uid, octet_length(metadata) + coalesce(octet_length(variables), 0) + octet_length(shown_variables) AS bytes
    FROM cluster_profile WHERE project_uid = ?`,
  )
  const insert = sql.prepare(
    `INSERT INTO cluster_profile (${headColumns}, metadata, variables, shown_variables)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const insertPack = sql.prepare(
    'INSERT OR IGNORE INTO cluster_profile_pack (name, profile_uid) VALUES (?, ?)',
  )
  const replace = sql.prepare(
    'UPDATE cluster_profile SET files_uid = ?, packs = ?, variables = ?, shown_variables = ?, modified_at = ? WHERE uid = ?',
  )
  const remove = sql.prepare('DELETE FROM cluster_profile WHERE uid = ?')
  return {
    find(uid) {
      const row = byUid.get(uid)
      if (!row) return undefined
      return {
        ...toProfileHead(row),
        metadata: String(row.metadata),
        variables: row.variables instanceof Uint8Array ? row.variables : undefined,
        shownVariables: JSON.parse(String(row.shown_variables)) as Variable[],
      }
    },
    findNamed(projectUid, name, version) {
      const row = byName.get(projectUid, name, version)
      return row && toProfileHead(row)
    },
    findTaken: createFindTaken(database, 'cluster_profile'),
    versions: (projectUid, name) =>
      versions.all(projectUid, name).map(({ uid, version }) => ({
        ...{ uid: String(uid), version: String(version) },
      })),
    withPack: (name) => withPack.all(name).map(toProfileHead),
    bytesIn: (projectUid) =>
      bytesIn
        .all(projectUid)
        .map(({ files_uid: filesUid, bytes }) => ({ filesUid: String(filesUid), rowBytes: Number(bytes) })),
    filesUids: () =>
      files.all().map(({ uid, files_uid: filesUid }) => ({ uid: String(uid), filesUid: String(filesUid) })),
    add(profile) {
      transaction(() => {
        insert.run(
          ...[profile.uid, profile.projectUid, profile.filesUid, profile.name, profile.version],
          ...[profile.type, profile.cloudType, profile.description],
          ...[JSON.stringify(profile.labels), JSON.stringify(profile.annotations)],
          ...[JSON.stringify(profile.packs), Number(profile.isPublished), Number(profile.hasUserMacros)],
          ...[profile.createdAt, profile.modifiedAt, profile.metadata, profile.variables ?? null],
          JSON.stringify(profile.shownVariables),
        )
        for (const { name } of profile.packs) insertPack.run(name, profile.uid)
      })
    },
    replace(profile) {
      replace.run(
        ...[profile.filesUid, JSON.stringify(profile.packs), profile.variables ?? null],
        ...[JSON.stringify(profile.shownVariables), profile.modifiedAt, profile.uid],
      )
    },
    remove: (uid) => void remove.run(uid),
    counts: createScopeCounts(database, 'cluster_profile'),
  }
}

/** A row of `headColumns`. */
export const toProfileHead = (row: Readonly<Record<string, unknown>>): ProfileHead => ({
  uid: String(row.uid),
  projectUid: String(row.project_uid),
  filesUid: String(row.files_uid),
  name: String(row.name),
  version: String(row.version),
  type: String(row.type),
  cloudType: String(row.cloud_type),
  description: String(row.description),
  labels: JSON.parse(String(row.labels)) as Texts,
  annotations: JSON.parse(String(row.annotations)) as Texts,
  packs: JSON.parse(String(row.packs)) as ExaminedReference[],
  isPublished: row.is_published === 1,
  hasUserMacros: row.has_user_macros === 1,
  createdAt: Number(row.created_at),
  modifiedAt: Number(row.modified_at),
})
