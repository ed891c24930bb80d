import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../../api/schemas.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { listHosts, listRegistryContent } from '../reads/registry-content.ts'
import { readRegistryHealth } from '../reads/registry-health.ts'
import type { Registry } from '../registry/registry.ts'
import {
  ContentRegistry,
  ContentRegistryPassword,
  RegistryContentsDetails,
  RegistryContentsSyncStatus,
  RegistryHealthDetails,
} from '../schemas.ts'
import type { OpenStore } from '../store/open-store.ts'

export interface RegistryRoutesOptions {
  readonly registry: Pick<Registry, 'state'>
  readonly store: OpenStore
  /** The certificate of this host, PEM. */
  readonly certificate: () => string
}

/** The registry of this host: how runtimes reach it, and what they find there. */
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
        summary: 'How container runtimes reach the registry of this host',
        response: { 200: ContentRegistry, ...errorReplies(401, 503, 507) },
      },
    },
    async () => {
      await store.open()
      const { isEnabled, address, port, isTls, isAnonymous, isListening, problem, username } =
        registry.state()
      return {
        ...{ isEnabled, address, port, isTls, isAnonymous, isListening, username },
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
        summary: 'What can be pulled from this host',
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
        summary: 'What is still to be copied to other hosts of the cluster',
        response: { 200: RegistryContentsSyncStatus, ...errorReplies(401) },
      },
    },
    // Hosts do not exchange content: every host has what was uploaded to it.
    async () => ({
      statusMessage: 'Nothing is pending: no other host takes its content from this one.',
      pendingItems: [],
      errors: {},
    }),
  )
}
