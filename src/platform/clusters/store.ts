import { scopeCountsOf, createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import type { SQLInputValue } from 'node:sqlite'
import type { EdgeMachinePoolConfig } from '../../cluster/schemas.ts'
import type { GivenVariable } from '../../definition/definition.ts'
import type { Database } from '../../store/database.ts'
import type { UsingCluster } from '../profiles/store.ts'
import type {
  ClusterCondition,
  ClusterHeartbeat,
  ClusterStep,
  PackStatus,
  ClusterTemplate,
  EdgeNativeClusterConfig,
  SpectroCluster,
} from './schemas.ts'

/**
 * Clusters on hosts, one on each. The definition of each is in the folder `clusters/<files_uid>` of the state; `digest` is empty where there is
 * none to download. Secrets are sealed: the given values, the description for the host, the kubeconfig. The profiles that a cluster
 * uses are a table of their own, to find the clusters of a profile. Long columns come last: a list reads none of them.
 */
export const clusterTables = `
  CREATE TABLE cluster (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    host_uid TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    delete_requested_at INTEGER,
    files_uid TEXT NOT NULL,
    definition_bytes INTEGER NOT NULL,
    digest TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    heartbeat TEXT NOT NULL,
    conditions TEXT NOT NULL,
    templates TEXT NOT NULL,
    configuration TEXT NOT NULL,
    shown_values TEXT NOT NULL,
    packs TEXT NOT NULL,
    steps TEXT NOT NULL,
    kubeconfig BLOB,
    given BLOB NOT NULL,
    head BLOB NOT NULL
  ) STRICT;
  CREATE INDEX cluster_scope ON cluster (project_uid, created_at, uid);
  CREATE UNIQUE INDEX cluster_name ON cluster (project_uid, name);${scopeCountsOf('cluster')}
  CREATE TABLE cluster_profile_use (
    profile_uid TEXT NOT NULL,
    cluster_uid TEXT NOT NULL REFERENCES cluster ON DELETE CASCADE,
    PRIMARY KEY (profile_uid, cluster_uid)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX cluster_profile_use_cluster ON cluster_profile_use (cluster_uid);
`

type Texts = Readonly<Record<string, string>>

/** A cluster for its host: the `ClusterConfiguration` of the service API, without definition and variables. */
export interface Configuration {
  readonly metadata: { readonly name: string; readonly labels?: Texts }
  readonly spec: {
    readonly cloudConfig: {
      readonly spec: {
        readonly clusterConfig: EdgeNativeClusterConfig
        readonly machinePoolConfig: readonly [Pool]
      }
    }
  }
}

/** The only pool of a cluster. */
export interface Pool extends Readonly<Record<string, unknown>> {
  readonly name?: string
  readonly hosts: readonly [
    {
      readonly hostUid: string
      readonly hostName?: string
      readonly nicName?: string
      /** Only as the host has it. */
      readonly nic?: NonNullable<EdgeMachinePoolConfig['hosts'][number]['nic']>
      readonly staticIP?: string
    },
  ]
}

/** The last heartbeat of a cluster, but for its steps. */
type Heartbeat = Omit<ClusterHeartbeat, 'steps'>

/** A cluster as lists show it. Times are milliseconds since 1970. */
export interface ClusterHead {
  readonly uid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  readonly name: string
  /** The record of its host. */
  readonly hostUid: string
  /** Rises with each change of the desired state. */
  readonly number: number
  readonly state: SpectroCluster['status']['state']
  readonly createdAt: number
  readonly modifiedAt: number
  readonly deleteRequestedAt: number | undefined
  /** The folder with its definition; empty for a cluster that is deleted. */
  readonly filesUid: string
  readonly definitionBytes: number
  /** SHA-256, hex, of the download of the host; empty where that was lost. */
  readonly digest: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly heartbeat: Heartbeat | undefined
  readonly conditions: readonly ClusterCondition[]
  readonly templates: readonly ClusterTemplate[]
}

/** A cluster as it is stored, but for the sealed columns. */
export interface ClusterRecord extends ClusterHead {
  readonly configuration: Configuration
  /** Given values of variables, sensitive ones masked. */
  readonly shownValues: readonly GivenVariable[]
  readonly packs: readonly PackStatus[]
  readonly steps: readonly ClusterStep[]
  /** Sealed: given values of variables, JSON. */
  readonly given: Uint8Array
  /** Sealed: the description for the host, JSON. */
  readonly head: Uint8Array
}

/** A cluster as its host reports of it. */
export type ReportedCluster = ClusterHead &
  Pick<ClusterRecord, 'packs' | 'steps'> & { readonly hasKubeconfig: boolean }

/** The clusters in the database. */
export interface ClusterStore {
  find(uid: string): ClusterRecord | undefined
  findOn(hostUid: string): ClusterHead | undefined
  /** The part that reports of its host change, without the desired state: each host reports each minute. */
  findReported(uid: string): ReportedCluster | undefined
  /** Sealed: its description for the host. */
  description(uid: string): Uint8Array | undefined
  hasName(projectUid: string, name: string): boolean
  /** The clusters that use a profile, of all scopes. */
  using(profileUid: string): readonly UsingCluster[]
  /** The clusters that were made of a pack, of all scopes. */
  madeOf(packUid: string): readonly UsingCluster[]
  all(): readonly ClusterHead[]
  add(cluster: ClusterRecord): void
  /** Replaces the desired state. */
  replace(cluster: ClusterRecord): void
  report(cluster: ReportedCluster): void
  /** Sealed. */
  kubeconfig(uid: string): Uint8Array | undefined
  putKubeconfig(uid: string, sealed: Uint8Array): void
  remove(uid: string): void
  readonly counts: ScopeCounts
}

/** The columns of `ClusterHead`. */
export const headColumns =
  'uid, project_uid, name, host_uid, number, state, created_at, modified_at, delete_requested_at, files_uid, definition_bytes, digest, labels, annotations, heartbeat, conditions, templates'
const moreColumns = 'configuration, shown_values, packs, steps, given, head'

export function createClusterStore(database: Database): ClusterStore {
  const { sql, transaction } = database
  const columns = `${headColumns}, ${moreColumns}`
  const byUid = sql.prepare(`SELECT ${columns} FROM cluster WHERE uid = ?`)
  const byHost = sql.prepare(`SELECT ${headColumns} FROM cluster WHERE host_uid = ?`)
  const reported = sql.prepare(
    `SELECT ${headColumns}, packs, steps, kubeconfig IS NOT NULL AS has_kubeconfig FROM cluster WHERE uid = ?`,
  )
  const description = sql.prepare('SELECT head FROM cluster WHERE uid = ?')
  const named = sql.prepare('SELECT 1 FROM cluster WHERE project_uid = ? AND name = ?')
  const using = sql.prepare(
    'SELECT uid, name, project_uid FROM cluster WHERE uid IN (SELECT cluster_uid FROM cluster_profile_use WHERE profile_uid = ?) ORDER BY name, uid',
  )
  const madeOf = sql.prepare(
    `SELECT uid, name, project_uid FROM cluster WHERE EXISTS (
      SELECT 1 FROM json_each(templates) AS template, json_each(template.value, '$.packs') AS pack
      WHERE pack.value ->> '$.packUid' = ?
    ) ORDER BY name, uid`,
  )
  const all = sql.prepare(`SELECT ${headColumns} FROM cluster`)
  const insert = sql.prepare(`INSERT INTO cluster (${columns}) VALUES (${columns.replaceAll(/[^,]+/g, '?')})`)
  const wanted = [
    ...['number', 'state', 'modified_at', 'delete_requested_at', 'files_uid', 'definition_bytes', 'digest'],
    ...['templates', 'configuration', 'shown_values', 'given', 'head'],
  ]
  const replace = sql.prepare(
    `UPDATE cluster SET ${wanted.map((each) => `${each} = ?`).join(', ')} WHERE uid = ?`,
  )
  const report = sql.prepare(
    'UPDATE cluster SET state = ?, heartbeat = ?, conditions = ?, packs = ?, steps = ? WHERE uid = ?',
  )
  const kubeconfig = sql.prepare('SELECT kubeconfig FROM cluster WHERE uid = ?')
  const putKubeconfig = sql.prepare('UPDATE cluster SET kubeconfig = ? WHERE uid = ?')
  const remove = sql.prepare('DELETE FROM cluster WHERE uid = ?')
  const forget = sql.prepare('DELETE FROM cluster_profile_use WHERE cluster_uid = ?')
  const use = sql.prepare(
    'INSERT OR IGNORE INTO cluster_profile_use (profile_uid, cluster_uid) VALUES (?, ?)',
  )

  function setUses({ uid, templates }: ClusterRecord): void {
    forget.run(uid)
    for (const template of templates) use.run(template.uid, uid)
  }

  return {
    find(uid) {
      const row = byUid.get(uid)
      return row && toClusterRecord(row)
    },
    findOn(hostUid) {
      const row = byHost.get(hostUid)
      return row && toClusterHead(row)
    },
    findReported(uid) {
      const row = reported.get(uid)
      return row && { ...toReported(row), hasKubeconfig: row.has_kubeconfig === 1 }
    },
    description: (uid) => bytesIn(description.get(uid)?.head),
    hasName: (projectUid, name) => named.get(projectUid, name) !== undefined,
    using: (profileUid) => using.all(profileUid).map(toUsingCluster),
    madeOf: (packUid) => madeOf.all(packUid).map(toUsingCluster),
    all: () => all.all().map(toClusterHead),
    add(cluster) {
      const values: SQLInputValue[] = [
        ...[cluster.uid, cluster.projectUid, cluster.name, cluster.hostUid, cluster.number, cluster.state],
        ...[cluster.createdAt, cluster.modifiedAt, cluster.deleteRequestedAt ?? null, cluster.filesUid],
        ...[cluster.definitionBytes, cluster.digest, JSON.stringify(cluster.labels)],
        ...[JSON.stringify(cluster.annotations), JSON.stringify(cluster.heartbeat ?? null)],
        ...[JSON.stringify(cluster.conditions), JSON.stringify(cluster.templates)],
        ...[JSON.stringify(cluster.configuration), JSON.stringify(cluster.shownValues)],
        ...[JSON.stringify(cluster.packs), JSON.stringify(cluster.steps), cluster.given, cluster.head],
      ]
      transaction(() => {
        insert.run(...values)
        setUses(cluster)
      })
    },
    replace(cluster) {
      transaction(() => {
        replace.run(
          ...[cluster.number, cluster.state, cluster.modifiedAt, cluster.deleteRequestedAt ?? null],
          ...[cluster.filesUid, cluster.definitionBytes, cluster.digest, JSON.stringify(cluster.templates)],
          ...[JSON.stringify(cluster.configuration), JSON.stringify(cluster.shownValues)],
          ...[cluster.given, cluster.head, cluster.uid],
        )
        setUses(cluster)
      })
    },
    report({ uid, state, heartbeat, conditions, packs, steps }) {
      report.run(
        ...[state, JSON.stringify(heartbeat ?? null), JSON.stringify(conditions)],
        ...[JSON.stringify(packs), JSON.stringify(steps), uid],
      )
    },
    kubeconfig: (uid) => bytesIn(kubeconfig.get(uid)?.kubeconfig),
    putKubeconfig: (uid, sealed) => void putKubeconfig.run(sealed, uid),
    remove: (uid) => void remove.run(uid),
    counts: createScopeCounts(database, 'cluster'),
  }
}

const toUsingCluster = (row: Readonly<Record<string, unknown>>): UsingCluster => ({
  uid: String(row.uid),
  name: String(row.name),
  projectUid: String(row.project_uid),
})
const bytesIn = (value: unknown) => (value instanceof Uint8Array ? value : undefined)
const parse = (text: unknown): unknown => JSON.parse(String(text))

/** A row of `headColumns`. */
export const toClusterHead = (row: Readonly<Record<string, unknown>>): ClusterHead => ({
  uid: String(row.uid),
  projectUid: String(row.project_uid),
  name: String(row.name),
  hostUid: String(row.host_uid),
  number: Number(row.number),
  state: row.state as ClusterHead['state'],
  createdAt: Number(row.created_at),
  modifiedAt: Number(row.modified_at),
  deleteRequestedAt: row.delete_requested_at === null ? undefined : Number(row.delete_requested_at),
  filesUid: String(row.files_uid),
  definitionBytes: Number(row.definition_bytes),
  digest: String(row.digest),
  labels: parse(row.labels) as Texts,
  annotations: parse(row.annotations) as Texts,
  heartbeat: (parse(row.heartbeat) as Heartbeat | null) ?? undefined,
  conditions: parse(row.conditions) as ClusterCondition[],
  templates: parse(row.templates) as ClusterTemplate[],
})

const toReported = (row: Readonly<Record<string, unknown>>) => ({
  ...toClusterHead(row),
  packs: parse(row.packs) as PackStatus[],
  steps: parse(row.steps) as ClusterStep[],
})

const toClusterRecord = (row: Readonly<Record<string, unknown>>): ClusterRecord => ({
  ...toReported(row),
  configuration: parse(row.configuration) as Configuration,
  shownValues: parse(row.shown_values) as GivenVariable[],
  given: row.given as Uint8Array,
  head: row.head as Uint8Array,
})
