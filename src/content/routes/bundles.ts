import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import type { Bundles } from '../bundles.ts'
import { bundleList } from '../reads/bundle-list.ts'
import { entryList } from '../reads/entry-list.ts'
import { Bundle, BundleDeletion, BundleEntry, ContentUsage, UploadedContentDetails } from '../schemas.ts'

export interface BundleRoutesOptions {
  readonly bundles: Bundles
  readonly listTokens: ContinueTokens
}

/** Published bundles and what they take: `/v1/edge-mgmt/content/...`. */
export const bundleRoutes: FastifyPluginAsyncTypebox<BundleRoutesOptions> = async (app, options) => {
  const { bundles, listTokens } = options
  const tags = ['content']
  const path = '/v1/edge-mgmt/content/bundles'
  const params = Type.Object({ uid: Uid })
  // A bundle never changes; it may be deleted.
  const writable = (request: FastifyRequest) => (request.params as { readonly uid: string }).uid

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listBundles',
        tags,
        summary: 'List the bundles that are published on this host',
        querystring: listParameters(bundleList),
        response: { 200: listOf(Bundle), ...errorReplies(400, 401, 503, 507) },
      },
    },
    async ({ query }) => bundles.list(parseListQuery(query, bundleList, { tokens: listTokens })),
  )

  app.get(
    `${path}/:uid`,
    {
      config: { writable, access: 'viewer' },
      schema: {
        operationId: 'getBundle',
        tags,
        summary: 'Show a bundle',
        params,
        response: { 200: Bundle, ...errorReplies(400, 401, 404, 503, 507) },
      },
    },
    async ({ params: { uid } }) => bundles.show(uid),
  )

  app.get(
    `${path}/:uid/entries`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listBundleEntries',
        tags,
        summary: 'List the images, charts, programs and files of a bundle',
        description:
          'In the order of its index.json. hasTag says whether a pull by tag gets the entry of this bundle.',
        params,
        querystring: listParameters(entryList),
        response: { 200: listOf(BundleEntry), ...errorReplies(400, 401, 404, 503, 507) },
      },
    },
    async ({ params: { uid }, query }) =>
      bundles.entries(uid, parseListQuery(query, entryList, { tokens: listTokens, bound: [uid] })),
  )

  app.delete(
    `${path}/:uid`,
    {
      config: {
        writable,
        access: 'admin',
        audit: {
          action: 'delete',
          kind: 'bundle',
          changes: 'a bundle never changes: the record names the one that went',
          resource: ({ params: given }) => ({ uid: uidOf((given as { uid: string }).uid) }),
        },
      },
      schema: {
        operationId: 'deleteBundle',
        tags,
        summary: 'Delete a bundle, and what no other bundle has of it',
        description:
          'With dryRun=true nothing is deleted, and the reply says what would go. A bundle that something on this host needs is not deleted. Uploads keep the blobs that they have taken from it.',
        params,
        // With another name, `dryrun`, the bundle would be deleted.
        querystring: Type.Object(
          {
            dryRun: Type.Optional(
              Type.Boolean({ default: false, description: 'Only say what would be deleted.' }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: BundleDeletion, 204: NoContent, ...errorReplies(400, 401, 403, 404, 409, 503, 507) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      if (request.query.dryRun === true) {
        const plan = await bundles.planDeletion(uid)
        request.auditResource = plan
        request.auditNote = 'dry run, nothing is deleted'
        return reply.code(200).send(plan)
      }
      request.auditResource = await bundles.remove(uid, request.sessionEnd)
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/v1/edge-mgmt/content/usage',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getContentUsage',
        tags,
        summary: 'How much of the disk the content takes, and how much is left',
        response: { 200: ContentUsage, ...errorReplies(401, 503, 507) },
      },
    },
    async () => bundles.usage(),
  )

  app.get(
    '/v1/edge-mgmt/edgehosts/current/uploaded-content/details',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getUploadedContentDetails',
        tags,
        summary: 'The content that was published last',
        response: { 200: UploadedContentDetails, ...errorReplies(400, 401, 404, 503, 507) },
      },
    },
    async () => bundles.last(),
  )
}
