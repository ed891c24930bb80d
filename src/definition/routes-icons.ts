import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { matchesEtag } from '../api/etag.ts'
import { errorReplies, notModified } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Icons } from './slots/icons.ts'

const image = Type.Unsafe({ type: 'string', format: 'binary' })

/** Icons of packs: `GET /v1/edge-mgmt/icons/:digest`. */
export const iconRoutes: FastifyPluginAsyncTypebox<{ readonly icons: Icons }> = async (app, { icons }) => {
  app.get(
    '/v1/edge-mgmt/icons/:digest',
    {
      // An image element sends no token. Who knows the sum has seen the icon.
      config: { access: 'open' },
      schema: {
        operationId: 'getIcon',
        tags: ['clusters'],
        summary: 'The icon of a pack, for image elements, which send no token',
        description:
          'PNG, or SVG without active content; of definitions that this host holds, and of its cluster. A reply that has a logo as a data URL says its icon too, or the SHA-256 of the bytes of the logo names it.',
        params: Type.Object({
          digest: Type.String({ pattern: '^[0-9a-f]{64}$', accepts: '64 hexadecimal digits' }),
        }),
        response: {
          200: {
            description: 'The image.',
            content: { 'image/png': { schema: image }, 'image/svg+xml': { schema: image } },
          },
          ...notModified,
          ...errorReplies(400, 404),
        },
      },
    },
    async (request, reply) => {
      const { digest } = request.params
      const icon = await icons.find(digest)
      if (!icon) throw new AppError(generalErrors.NotFound, 'no definition of this host has such an icon')
      const etag = `"${digest}"`
      reply.headers({
        etag,
        'cache-control': 'public, max-age=31536000, immutable',
        // An SVG that is opened by itself would be a document of this origin.
        'content-security-policy': "default-src 'none'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
      })
      if (matchesEtag(request, etag)) return reply.code(304).send()
      return reply.header('content-type', icon.mediaType).send(icon.bytes)
    },
  )
}
