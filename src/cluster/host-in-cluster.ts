import { outOfCluster, type HostInCluster } from '../host/document.ts'
import { hasRun, isDeleting, type ClusterRecord } from './cluster-store.ts'

/** What this host is in its cluster. @param isSetUp whether the control plane is set up */
export function hostInCluster(record: ClusterRecord | undefined, isSetUp: boolean): HostInCluster {
  if (!record) return outOfCluster
  return {
    configurationStatus: hasRun(record) && !isDeleting(record) ? 'configured' : 'inprogress',
    nodeRole: isSetUp || hasRun(record) ? 'controlplane' : 'init',
    isClusterPhase: true,
  }
}
