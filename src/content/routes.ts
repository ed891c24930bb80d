import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { errorReplies, NoContent } from '../api/schemas.ts'
import { Uid, uidOf } from '../base/uid.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import { listOf } from '../lists/page.ts'
import { listParameters, parseListQuery } from '../lists/query.ts'
import type { Bundles } from './bundles.ts'
import { bundleList, entryList } from './reads/lists.ts'
import {
  Bundle,
  BundleDeletion,
  BundleEntry,
  ContentUsage,
  UploadedContentDetails,
  ContentRegistry,
  ContentRegistryPassword,
  RegistryContentsDetails,
  RegistryContentsSyncStatus,
  RegistryHealthDetails,
  ContentSigningKey,
} from './schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { listHosts, listRegistryContent, readRegistryHealth } from './reads/registry.ts'
import type { Registry } from './registry/registry.ts'
import type { OpenStore } from './store/open-store.ts'
import type { SigningKey } from '../upload/signing.ts'

interface BundleRoutesOptions {
  readonly bundles: Bundles
  readonly listTokens: ContinueTokens
}

/** Published bundles and their disk usage: `/v1/edge-mgmt/content/...`. */
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
          'With dryRun=true nothing is deleted, and the reply lists what would go. A bundle that something on this host needs is not deleted. Uploads keep the blobs that they have taken from it.',
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
        summary: 'Disk usage of the content, and the free space',
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

interface RegistryRoutesOptions {
  readonly registry: Pick<Registry, 'state'>
  readonly store: OpenStore
  /** The certificate of this host, PEM. */
  readonly certificate: () => string
}

/** The registry of this host: its address for runtimes, and its content. */
export const registryRoutes: FastifyPluginAsyncTypebox<RegistryRoutesOptions> = async (app, options) => {
  const { registry, store, certificate } = options
  const tags = ['content']
  const path = '/v1/edge-mgmt/content/registry'
  const clusterPath = '/v1/edge-mgmt/cluster/registry'

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getContentRegistry',
        tags,
        summary: 'Access of container runtimes to the registry of this host',
        response: { 200: ContentRegistry, ...errorReplies(401, 503, 507) },
      },
    },
    async () => {
      await store.open()
      const { isEnabled, address, port, isTls, isAnonymous, isListening, problem, username } =
        registry.state()
      return {
        isEnabled,
        address,
        port,
        isTls,
        isAnonymous,
        isListening,
        username,
        ...(problem === undefined ? {} : { problem }),
        hosts: await listHosts(store.index().database),
        ...(isTls ? { certificate: certificate() } : {}),
      }
    },
  )

  app.get(
    `${path}/password`,
    {
      // A HEAD request would be a reading too.
      exposeHeadRoute: false,
      config: { access: 'admin', audit: { action: 'activity', kind: 'registry-password' } },
      schema: {
        operationId: 'getContentRegistryPassword',
        tags,
        summary: 'The password of the registry of this host, for the configuration of container runtimes',
        description: 'Each request is in the audit trail.',
        response: { 200: ContentRegistryPassword, ...errorReplies(401, 403, 404, 503, 507) },
      },
    },
    async () => {
      const { isEnabled, username, password, problem } = registry.state()
      if (!isEnabled)
        throw new AppError(
          generalErrors.NotFound,
          'the registry of this host is switched off; content.registry.enabled switches it on',
        )
      if (password === '') throw new AppError(generalErrors.NotReady, problem ?? 'the registry is starting')
      return { username, password }
    },
  )

  app.get(
    `${clusterPath}/health`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getRegistryHealth',
        tags,
        summary: 'Whether images can be pulled from this host, and the disk that they are on',
        response: { 200: RegistryHealthDetails, ...errorReplies(401) },
      },
    },
    async () => readRegistryHealth(store, registry.state()),
  )

  app.get(
    `${clusterPath}/content/details`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getRegistryContentDetails',
        tags,
        summary: 'Content that can be pulled from this host',
        description:
          'Equal entries of several bundles are one. The newest 10,000; GET /v1/edge-mgmt/content/bundles/{uid}/entries lists all of a bundle.',
        response: { 200: RegistryContentsDetails, ...errorReplies(401, 503, 507) },
      },
    },
    async () => {
      await store.open()
      return { status: await listRegistryContent(store.index().database) }
    },
  )

  app.get(
    `${clusterPath}/content/sync-status/details`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getRegistryContentSyncStatus',
        tags,
        summary: 'Content still to be copied to other hosts of the cluster',
        response: { 200: RegistryContentsSyncStatus, ...errorReplies(401) },
      },
    },
    // Hosts do not exchange content: every host has its own uploads.
    async () => ({
      statusMessage: 'Nothing is pending: no other host takes its content from this one.',
      pendingItems: [],
      errors: {},
    }),
  )
}

interface SigningKeyRoutesOptions {
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
