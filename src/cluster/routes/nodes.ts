import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../../api/schemas.ts'
import type { Reading } from '../reading.ts'
import { ClusterNodes, MachinePools } from '../schemas.ts'

export interface NodeRoutesOptions {
  readonly reading: Pick<Reading, 'nodes' | 'pools'>
}

/** Nodes and pools of the cluster: `/v1/edge-mgmt/clusters/current/...`. */
export const nodeRoutes: FastifyPluginAsyncTypebox<NodeRoutesOptions> = async (app, { reading }) => {
  const tags = ['cluster']
  const path = '/v1/edge-mgmt/clusters/current'

  app.get(
    `${path}/nodes`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listClusterNodes',
        tags,
        summary: 'The nodes of the cluster',
        description:
          'As Kubernetes has them now; while its API server does not answer, this host as Unknown.',
        response: { 200: ClusterNodes, ...errorReplies(401, 404) },
      },
    },
    async () => reading.nodes(),
  )

  app.get(
    `${path}/machinepools`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listMachinePools',
        tags,
        summary: 'The pools of the cluster',
        description: 'All of them, without listmeta.',
        response: { 200: MachinePools, ...errorReplies(401, 404) },
      },
    },
    async () => reading.pools(),
  )
}
