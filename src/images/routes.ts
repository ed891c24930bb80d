import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import { listOf } from '../lists/page.ts'
import { listParameters, parseListQuery } from '../lists/query.ts'
import { imageList, type Images } from './images.ts'
import { HostImage, ImageSource } from './schemas.ts'

export interface ImageRoutesOptions {
  readonly images: Images
  readonly listTokens: ContinueTokens
}

/** The images available on this host: `/v1/edge-mgmt/content/images`. */
export const imageRoutes: FastifyPluginAsyncTypebox<ImageRoutesOptions> = async (app, options) => {
  const { images, listTokens } = options
  app.get(
    '/v1/edge-mgmt/content/images',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listImages',
        tags: ['content'],
        summary: 'List the images available on this host: in its content and in its container runtimes',
        description:
          'Images of containerd (all namespaces, also of k3s), Docker, Podman and uploaded bundles, joined by digest. The runtimes are read every minute; one that does not answer within 5 seconds is named in sources, and its images of the last good reading stay.',
        querystring: Type.Object({
          ...listParameters(imageList).properties,
          refresh: Type.Optional(
            Type.Boolean({
              description:
                'Read the runtimes again before the reply, which takes up to 5 seconds; ignored with continue.',
            }),
          ),
        }),
        response: {
          200: Type.Object({ ...listOf(HostImage).properties, sources: Type.Array(ImageSource) }),
          ...errorReplies(400, 401, 503),
        },
      },
    },
    async ({ query: { refresh = false, ...query } }) =>
      images.list(
        parseListQuery(query, imageList, { tokens: listTokens }),
        refresh && query.continue === undefined,
      ),
  )
}
