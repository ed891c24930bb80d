import { join } from 'node:path'
import type { Secrets } from '../../secrets/secrets.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { PlatformSettings } from '../config.ts'
import type { HostParts } from '../hosts/create-hosts.ts'
import { openKeptFolders } from '../kept-folders.ts'
import { sealedColumns, sealOf } from '../secret/sealed-columns.ts'
import type { PackParts } from '../packs/create-packs.ts'
import { createClusters, type Clusters } from './clusters.ts'
import type { ClusterStore } from './cluster-store.ts'
import { createDownloads, type Downloads } from './downloads.ts'
import { createExamineWish } from './examine-wish.ts'
import { createClusterReports, type ClusterReports } from './reports.ts'
import type { WantedIndex } from './wanted-index.ts'

export interface ClusterPartsOptions {
  readonly stateDirectory: string
  readonly settings: PlatformSettings['packs']
  readonly store: ClusterStore
  readonly index: WantedIndex
  readonly database: Database
  /** See `LeftoverOptions`. */
  readonly completeUntil: number
  readonly read: Reader['read']
  readonly secrets: Secrets
  readonly tenantUid: string
  readonly hosts: Pick<HostParts, 'find' | 'findByOwnId'>
  readonly packs: Pick<PackParts, 'packs' | 'profiles' | 'examinations'>
  /** Whether the disk has space for what could also come later. */
  readonly hasSpace: () => boolean
  readonly clock: Clock
  readonly log: Logger
}

/** Clusters on hosts: what is wanted, what their hosts download of it, and what they report. */
export interface ClusterParts {
  readonly clusters: Clusters
  readonly downloads: Downloads
  readonly reports: ClusterReports
  readonly index: WantedIndex
}

/** Creates the parts in the order of their dependencies, and removes what a killed daemon left. */
export async function createClusterParts(options: ClusterPartsOptions): Promise<ClusterParts> {
  const { stateDirectory, settings, store, index, database, read, secrets, hosts, packs, clock, log } =
    options
  const { tenantUid } = options
  const present = store.all()
  const folders = await openKeptFolders({
    completeUntil: options.completeUntil,
    log,
    folder: join(stateDirectory, 'clusters'),
    named: present.flatMap(({ filesUid }) => (filesUid === '' ? [] : [filesUid])),
    onMissing(filesUid) {
      const { uid = '' } = present.find((each) => each.filesUid === filesUid) ?? {}
      const cluster = store.find(uid)
      if (!cluster) return
      store.replace({ ...cluster, filesUid: '', definitionBytes: 0, digest: '' })
      index.refresh(cluster.hostUid)
      log.error({ name: cluster.name }, 'the definition of a cluster is missing; apply the cluster again')
    },
  })
  const headSeal = sealOf(secrets, sealedColumns.clusterDescriptions)
  const { takeHeartbeat, ...reports } = createClusterReports({
    ...{ store, hasSpace: options.hasSpace, clock, seal: sealOf(secrets, sealedColumns.kubeconfigs) },
  })
  const { profiles } = packs
  const clusters = createClusters({
    ...{ store, index, folders, profiles, tenantUid, headSeal, database, read, clock },
    valueSeal: sealOf(secrets, sealedColumns.clusterValues),
    ...{ findHost: hosts.find, findHostByOwnId: hosts.findByOwnId, heardAt: reports.heardAt },
    examine: createExamineWish({
      ...{ profiles, packs: packs.packs, examinations: packs.examinations, settings, tenantUid },
    }),
  })
  return {
    ...{ clusters, index, downloads: createDownloads({ store, folders, profiles, seal: headSeal }) },
    reports: {
      ...reports,
      async heartbeat(cluster, heartbeat) {
        if (takeHeartbeat(cluster, heartbeat)) await clusters.forget(cluster)
      },
    },
  }
}
