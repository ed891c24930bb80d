import type { Entry, Sent } from './access-entry.ts'
import { clusterEntity } from './platform-clusters.ts'

export interface ClusterEntriesOptions {
  /** A host of a scope without a cluster. */
  readonly hostIn: (scope: string) => Promise<string>
  readonly profileUid: () => string
  /** A cluster of a scope with a kubeconfig, the same one for each use. */
  readonly clusterIn: (scope: string, use: string) => Promise<string>
  /** The host of the matrix, and its cluster. */
  readonly hostUid: () => string
  readonly ofHost: () => string
}

/** The operations on clusters in the access matrix. */
export function clusterEntries(options: ClusterEntriesOptions): Readonly<Record<string, Entry>> {
  const { hostIn, profileUid, clusterIn, hostUid } = options
  const seen = async (scope: string): Promise<Sent> => ({ parameter: await clusterIn(scope, 'seen') })
  const doomed = async (scope: string): Promise<Sent> => ({ parameter: await clusterIn(scope, 'doomed') })
  const changes = (payload: () => object) => async (scope: string) => ({
    ...(await seen(scope)),
    payload: payload(),
  })
  const ofHost = (payload: object) => async () => ({ parameter: options.ofHost(), payload })
  return {
    'POST /v1/spectroclusters/edge-native/validate': {
      ...{ rule: 'operator in the scope', status: 200 },
      request: async (scope) => ({ payload: clusterEntity(await hostIn(scope), profileUid()) }),
    },
    'POST /v1/spectroclusters/edge-native': {
      ...{ rule: 'operator in the scope', status: 201 },
      request: async (scope) => ({ payload: clusterEntity(await hostIn(scope), profileUid()) }),
    },
    'GET /v1/spectroclusters': { rule: 'viewer in the scope', status: 200 },
    'GET /v1/spectroclusters/:uid': { rule: 'viewer in the scope', status: 200, request: seen },
    'GET /v1/spectroclusters/:uid/status': { rule: 'viewer in the scope', status: 200, request: seen },
    'GET /v1/spectroclusters/:uid/profiles': { rule: 'viewer in the scope', status: 200, request: seen },
    'PUT /v1/spectroclusters/:uid/profiles': {
      ...{ rule: 'operator in the scope', status: 204 },
      request: changes(() => ({ profiles: [{ uid: profileUid() }] })),
    },
    'GET /v1/spectroclusters/:uid/variables': { rule: 'viewer in the scope', status: 200, request: seen },
    'PATCH /v1/spectroclusters/:uid/variables': {
      ...{ rule: 'operator in the scope', status: 204 },
      request: changes(() => [{ profileUid: profileUid(), variables: [] }]),
    },
    'POST /v1/spectroclusters/:uid/apply': {
      ...{ rule: 'operator in the scope', status: 204, request: seen },
    },
    'DELETE /v1/spectroclusters/:uid': { rule: 'admin in the scope', status: 204, request: doomed },
    'GET /v1/cloudconfigs/edge-native/:configUid': {
      ...{ rule: 'viewer in the scope', status: 200, request: seen },
    },
    'GET /v1/cloudconfigs/edge-native/:configUid/machinePools/:machinePoolName/machines': {
      ...{ rule: 'viewer in the scope', status: 200, request: seen },
    },
    'PUT /v1/cloudconfigs/edge-native/:configUid/clusterConfig': {
      ...{ rule: 'operator in the scope', status: 204 },
      request: changes(() => ({ clusterConfig: { ntpServers: [] } })),
    },
    'GET /v1/spectroclusters/:uid/assets/kubeconfig': {
      ...{ rule: 'admin in the scope', status: 200, request: seen },
    },
    'PUT /v1/spectroclusters/:uid/assets/kubeconfig': {
      ...{ rule: 'host', status: 204, request: ofHost({ kubeconfig: 'a' }) },
    },
    'PUT /v1/spectroclusters/:uid/heartbeat': {
      ...{ rule: 'host', status: 204, request: ofHost({ agentVersion: '1' }) },
    },
    'PATCH /v1/spectroclusters/:uid/status/conditions': {
      ...{ rule: 'host', status: 204, request: ofHost([]) },
    },
    'PATCH /v1/spectroclusters/:uid/packs/status': { rule: 'host', status: 204, request: ofHost({}) },
    'PATCH /v1/edgehosts/:uid/packs/status': {
      ...{ rule: 'host', status: 204 },
      request: async () => ({ parameter: hostUid(), payload: {} }),
    },
    'GET /v1/edgehosts/:uid/spc/download': {
      ...{ rule: 'host', status: 200 },
      request: async () => ({ parameter: hostUid() }),
    },
  }
}
