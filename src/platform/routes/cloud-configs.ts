import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../../api/schemas.ts'
import { Uid } from '../../base/uid.ts'
import { etagOf, type Clusters } from '../clusters/clusters.ts'
import { EdgeNativeCloudConfig } from '../schemas/cloud-configs.ts'
import { scopeOf } from './scope.ts'

export interface CloudConfigRoutesOptions {
  readonly clusters: Pick<Clusters, 'get' | 'showConfig'>
}

/** Reads of the cloud configurations of clusters: `/v1/cloudconfigs/edge-native…`. */
export const cloudConfigRoutes: FastifyPluginAsyncTypebox<CloudConfigRoutesOptions> = async (
  app,
  { clusters },
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
}
