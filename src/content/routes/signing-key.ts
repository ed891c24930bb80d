import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../../api/schemas.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { ContentSigningKey } from '../schemas.ts'
import type { SigningKey } from '../../upload/signing.ts'

export interface SigningKeyRoutesOptions {
  /** Undefined where uploads need no signature; `since` is milliseconds since 1970, UTC. */
  readonly signing: { readonly key: SigningKey; readonly since: number } | undefined
}

/** The key of uploads: `/v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key`. */
export const signingKeyRoutes: FastifyPluginAsyncTypebox<SigningKeyRoutesOptions> = async (
  app,
  { signing },
) => {
  app.get(
    '/v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getContentSigningKey',
        tags: ['content'],
        summary: 'The public key that verifies upload signatures',
        response: { 200: ContentSigningKey, ...errorReplies(401, 404) },
      },
    },
    async () => {
      if (!signing)
        throw new AppError(
          generalErrors.NotFound,
          'this host has no signing key and accepts uploads without a signature; content.signing.publicKey in its configuration sets one',
        )
      const { key, since } = signing
      return {
        key: Buffer.from(key.pem).toString('base64'),
        description: key.description,
        creationTimestamp: new Date(since).toISOString(),
      }
    },
  )
}
