import type { Declaration } from '../root/room.ts'
import { clusterErrors } from './codes.ts'
import { Cluster } from './config.ts'

/** The cluster of this host: created from a definition, watched, and deleted. */
export const about = {
  errors: clusterErrors,
  config: { cluster: Cluster },
  attention: {
    ApiSilent: 'The API server of the cluster does not answer.',
    ClusterFailed: 'The cluster cannot be made as it is desired; it is tried again.',
    ClusterUnhealthy: 'The cluster runs, and a part of it does not.',
    ClusterProvisioning: 'The cluster is being set up or changed.',
    ClusterDeleting: 'The cluster is being deleted.',
    PodsFailing:
      'Pods of a pack, or of CoreDNS or kube-proxy, do not run; the message begins with the reason.',
    PackFailing: 'A pack could not be applied, or is not available.',
    RevisionApplying: 'A revision is being applied, with the time that it has left.',
    RevisionHeld: 'A revision is held, since values are missing.',
    RevisionWaiting: 'A revision waits for its time.',
    RevisionTakenBack: 'The last change of the cluster was taken back.',
    ConditionFalse: 'Certificates that end, or settings of the host that are not applied.',
    HostLacking: 'This host lacks something that a cluster needs; the object names the pre-flight check.',
    DefinitionWaits: 'There is a definition and no cluster.',
  },
  families: {
    edgehostd_cluster_phase: {
      type: 'gauge',
      help: '1 for the phase of the cluster; absent without a cluster.',
      labels: ['phase'],
    },
    edgehostd_cluster_healthy: {
      type: 'gauge',
      help: '1 while the node is Ready and every workload of the packs is available, otherwise 0; absent without a cluster.',
    },
    edgehostd_cluster_steps_total: {
      type: 'counter',
      help: 'Steps of the cluster that have ended: done, failed, or cut-off, as by a power cut or a deletion.',
      labels: ['result'],
    },
    edgehostd_cluster_step_duration_seconds: {
      type: 'histogram',
      help: 'How long steps took that are done.',
    },
  },
  support: [
    {
      name: 'cluster-details.json',
      path: '/v1/edge-mgmt/cluster/details?kubeconfig=false',
      mayBeAbsent: true,
    },
    { name: 'cluster-certificates.json', path: '/v1/edge-mgmt/cluster/certificates', mayBeAbsent: true },
    { name: 'cluster-applications.json', path: '/v1/edge-mgmt/cluster/applications', mayBeAbsent: true },
    { name: 'cluster-revisions.json', path: '/v1/edge-mgmt/cluster/revisions', mayBeAbsent: true },
    { name: 'error-logs.json', path: '/v1/edge-mgmt/edgehosts/current/error-logs?logCount=200' },
    { name: 'cluster-events.json', path: '/v1/edge-mgmt/cluster/events' },
    { name: 'cluster-lifecycle.json', path: '/v1/edge-mgmt/events/lifecycle' },
    { name: 'cluster-nodes.json', path: '/v1/edge-mgmt/clusters/current/nodes', mayBeAbsent: true },
  ],
  tags: { cluster: 'The cluster of this host.' },
} as const satisfies Declaration
