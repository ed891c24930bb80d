import { scopeCountsOf, createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import type { ExaminedReference } from '../../definition/examination/protocol.ts'
import type { Database } from '../../store/database.ts'
import { type Variable, ClusterProfile } from './schemas.ts'
import { createFindTaken, type FindTaken } from '../names.ts'
import { hidden, type Compared } from '../../base/described-change.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'

/**
 * Cluster profiles; most of each is in the folder `profiles/<files_uid>` of the state. Its variables are sealed, since their defaults may be
 * secret. The names of its packs are a table of their own, to find the profiles that use a pack.
 */
export const profileTables = `
  CREATE TABLE cluster_profile (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    files_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    cloud_type TEXT NOT NULL,
    description TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    metadata TEXT NOT NULL,
    variables BLOB,
    shown_variables TEXT NOT NULL,
    packs TEXT NOT NULL,
    is_published INTEGER NOT NULL,
    has_user_macros INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX cluster_profile_scope ON cluster_profile (project_uid, created_at, uid);
  CREATE UNIQUE INDEX cluster_profile_name ON cluster_profile (project_uid, name, version);${scopeCountsOf('cluster_profile')}
  CREATE TABLE cluster_profile_pack (
    name TEXT NOT NULL,
    profile_uid TEXT NOT NULL REFERENCES cluster_profile ON DELETE CASCADE,
    PRIMARY KEY (name, profile_uid)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX cluster_profile_pack_profile ON cluster_profile_pack (profile_uid);
`

type Texts = Readonly<Record<string, string>>

/** A profile as lists show it. Times are milliseconds since 1970. */
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
  /** Labels of the export that are texts. */
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
  /** For each profile of a scope its folder, and the size of its texts in the database. */
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
        uid: String(uid),
        version: String(version),
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

/** Queryable fields of the list of profiles. */
export const profileList: ListResource<SqlField> = {
  name: 'cluster profiles',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'metadata.lastModifiedTimestamp': { type: 'time', column: 'modified_at' },
    'spec.version': textColumn('version'),
    'status.isPublished': { type: 'boolean', column: 'is_published' },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: ClusterProfile,
}

/** A cluster that uses a profile. */
export interface UsingCluster {
  readonly uid: string
  readonly name: string
  readonly projectUid: string
}

/** Facts about a profile beside its record. */
interface ProfileUses {
  readonly clusters: readonly UsingCluster[]
  /** For each pack the uid that it means now; empty for none. */
  readonly packUids: readonly string[]
}

/** A profile in lists: its packs without values. */
export function toClusterProfile(profile: ProfileHead, { clusters, packUids }: ProfileUses): ClusterProfile {
  const template = {
    cloudType: profile.cloudType,
    name: profile.name,
    profileVersion: profile.version,
    type: profile.type,
    uid: profile.uid,
    packs: profile.packs.map(({ name, tag, layer, type, version }, index) => ({
      name,
      tag,
      layer: layer || 'addon',
      type: type || 'spectro',
      ...(version === '' ? {} : { version }),
      packUid: packUids[index] ?? '',
    })),
  }
  return {
    apiVersion: 'v1',
    kind: 'ClusterProfile',
    metadata: {
      annotations: {
        ...(profile.description === '' ? {} : { description: profile.description }),
        ...profile.annotations,
      },
      creationTimestamp: formatTime(profile.createdAt),
      labels: profile.labels,
      lastModifiedTimestamp: formatTime(profile.modifiedAt),
      name: profile.name,
      uid: profile.uid,
    },
    spec: {
      ...(profile.isPublished ? { published: template } : { draft: template }),
      version: profile.version,
    },
    status: {
      hasUserMacros: profile.hasUserMacros,
      inUseClusterUids: clusters.map(({ uid }) => uid),
      inUseClusters: clusters.map((cluster) => ({ kind: 'spectrocluster', ...cluster })),
      isPublished: profile.isPublished,
    },
  }
}

/** A profile as the audit trail compares it. Pure. @param stored its variables, with the sensitive values; undefined where they cannot be read */
export function comparedProfile(profile: ProfileRecord, stored: readonly Variable[] | undefined): Compared {
  const { name, version, type, cloudType, description, labels, annotations, isPublished } = profile
  return {
    name,
    version,
    type,
    cloudType,
    description,
    labels,
    annotations,
    isPublished,
    packs: profile.packs.map(({ name: pack, tag }) => ({ name: pack, tag })),
    variables: (stored ?? profile.shownVariables).map(({ isSensitive = false, ...variable }) => ({
      ...variable,
      isSensitive,
      ...(isSensitive
        ? {
            defaultValue: hidden(variable.defaultValue ?? ''),
            options: hidden(variable.options ? JSON.stringify(variable.options) : ''),
          }
        : {}),
    })),
  }
}
