import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../api/schemas.ts'
import { PlatformLink } from './schemas.ts'

/** The link of this host to its platform: `/v1/edge-mgmt/platform`. */
export const platformLinkRoutes: FastifyPluginAsyncTypebox<{ readonly link: () => PlatformLink }> = async (
  app,
  { link },
) => {
  app.get(
    '/v1/edge-mgmt/platform',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getPlatformLink',
        tags: ['platform'],
        summary: 'Whether this host is connected to a platform, and if not, why',
        response: { 200: PlatformLink, ...errorReplies(401) },
      },
    },
    async () => link(),
  )
}
