import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../../api/schemas.ts'
import { ClusterCurrentApplications } from '../packs/schemas.ts'

export interface ApplicationRoutesOptions {
  /** @throws AppError NotFound where there is no cluster */
  readonly applications: () => Promise<ClusterCurrentApplications>
}

/** The profiles and packs of the cluster: `/v1/edge-mgmt/cluster/applications`. */
export const applicationRoutes: FastifyPluginAsyncTypebox<ApplicationRoutesOptions> = async (
  app,
  options,
) => {
  app.get(
    '/v1/edge-mgmt/cluster/applications',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getClusterApplications',
        tags: ['cluster'],
        summary: 'The profiles and packs of the cluster, and how far each pack is',
        description:
          'Packs are installed in the order of their layers and install priorities; those of a number wait until those before are Available.',
        response: { 200: ClusterCurrentApplications, ...errorReplies(401, 404) },
      },
    },
    async () => options.applications(),
  )
}
