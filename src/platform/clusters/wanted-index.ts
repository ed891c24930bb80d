import type { ClusterHead, ClusterStore } from './cluster-store.ts'

/** What is known of the cluster of each host without asking the database, since each heartbeat asks. */
export interface WantedIndex {
  /** The cluster of a host. */
  clusterOn(hostUid: string): { readonly uid: string; readonly name: string } | undefined
  /** `Edgehost-Wanted` for a host, a dictionary of RFC 9651; undefined where nothing is wanted of it. */
  headerFor(hostUid: string): string | undefined
  /** Called when a change of the cluster of a host is committed. */
  refresh(hostUid: string): void
}

/** The entity tag of what a host downloads, without its quotes. */
export const tagOf = ({ number, digest }: Pick<ClusterHead, 'number' | 'digest'>): string =>
  `${number}-${digest.slice(0, 32)}`

export function createWantedIndex(store: Pick<ClusterStore, 'all' | 'findOn'>): WantedIndex {
  const byHost = new Map<string, { uid: string; name: string; header: string | undefined }>()
  const toEntry = (cluster: ClusterHead) => ({
    ...{ uid: cluster.uid, name: cluster.name },
    header:
      cluster.digest === ''
        ? undefined
        : `number=${cluster.number}, etag="${tagOf(cluster)}", uid="${cluster.uid}"${
            cluster.deleteRequestedAt === undefined ? '' : ', deletion=1'
          }`,
  })
  for (const cluster of store.all()) byHost.set(cluster.hostUid, toEntry(cluster))
  return {
    clusterOn(hostUid) {
      const entry = byHost.get(hostUid)
      return entry && { uid: entry.uid, name: entry.name }
    },
    headerFor: (hostUid) => byHost.get(hostUid)?.header,
    refresh(hostUid) {
      const cluster = store.findOn(hostUid)
      if (cluster) byHost.set(hostUid, toEntry(cluster))
      else byHost.delete(hostUid)
    },
  }
}
