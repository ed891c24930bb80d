import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../../api/schemas.ts'
import { Uid } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listInMemory } from '../../lists/memory.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { etagOf, type Clusters } from '../clusters/clusters.ts'
import type { EdgePool } from '../machines/edge-machines.ts'
import { machineList } from '../machines/machine-list.ts'
import type { MachineProvider } from '../machines/provider.ts'
import { EdgeNativeCloudConfig } from '../schemas/cloud-configs.ts'
import { Machine } from '../schemas/machines.ts'
import { scopeOf } from './scope.ts'

export interface CloudConfigRoutesOptions {
  readonly clusters: Pick<Clusters, 'get' | 'showConfig'>
  readonly edgeMachines: Pick<MachineProvider<undefined, EdgePool>, 'machines'>
  readonly listTokens: ContinueTokens
}

/** Reads of the cloud configurations of clusters: `/v1/cloudconfigs/edge-native…`. */
export const cloudConfigRoutes: FastifyPluginAsyncTypebox<CloudConfigRoutesOptions> = async (
  app,
  { clusters, edgeMachines, listTokens },
) => {
  const tags = ['spectroclusters']

  app.get(
    '/v1/cloudconfigs/edge-native/:configUid',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getEdgeNativeCloudConfig',
        tags,
        summary: 'The network, the settings and the pool of a cluster',
        description: 'The uid is that of the cluster.',
        params: Type.Object({ configUid: Uid }),
        response: { 200: EdgeNativeCloudConfig, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const cluster = clusters.get(request.params.configUid, scopeOf(request))
      return reply.header('etag', etagOf(cluster)).send(clusters.showConfig(cluster))
    },
  )

  app.get(
    '/v1/cloudconfigs/edge-native/:configUid/machinePools/:machinePoolName/machines',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listEdgeNativeMachines',
        tags,
        summary: 'List the hosts of a machine pool as machines, the newest first',
        description: 'The uid is that of the cluster, and that of a machine is that of its host.',
        params: Type.Object({ configUid: Uid, machinePoolName: Type.String({ maxLength: 256 }) }),
        querystring: listParameters(machineList),
        response: { 200: listOf(Machine), ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const { configUid, machinePoolName: name } = request.params
      const bound = [projectUid, configUid, name]
      const query = parseListQuery(request.query, machineList, { tokens: listTokens, bound })
      const cluster = clusters.get(configUid, projectUid)
      const machines = await edgeMachines.machines({ cluster, name }, request.sessionEnd)
      return listInMemory(machines, query, machineList, (machine) => machine)
    },
  )
}
