import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { matchesEtag } from '../../api/etag.ts'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent, notModified } from '../../api/schemas.ts'
import { requireTag } from '../../errors/refused-field.ts'
import type { Creation } from '../creation.ts'
import type { Reading } from '../reading.ts'
import { DryRunQuery } from './dry-run.ts'
import { waitFor } from './wait-for.ts'
import { ClusterConfiguration, ClusterCreated, ClusterDetails, ClusterDryRun } from '../schemas.ts'

export interface ClusterRoutesOptions {
  readonly creation: Creation
  readonly reading: Reading
  /** @throws AppError NotFound without a cluster */
  readonly remove: () => { readonly uid: string; readonly name: string }
}

/** The cluster of this host: `/v1/edge-mgmt/cluster`. */
export const clusterRoutes: FastifyPluginAsyncTypebox<ClusterRoutesOptions> = async (app, options) => {
  const { creation, reading, remove } = options
  const tags = ['cluster']
  const path = '/v1/edge-mgmt/cluster'
  const changes = () => reading.compared()

  app.post(
    path,
    {
      config: { access: 'admin', airgapOnly: true, audit: { action: 'create', kind: 'cluster', changes } },
      schema: {
        operationId: 'createCluster',
        tags,
        summary: 'Create the cluster of this host',
        description:
          'All pre-flight checks are made before anything is changed; then the reply comes, and the host makes the cluster by itself: see its details and events. The same Idempotency-Key within 24 hours, or an equal body while there is a cluster, gets the uid of the first request.',
        headers: Type.Object({
          'idempotency-key': Type.Optional(
            Type.String({
              ...{ minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
              accepts: 'visible characters of ASCII without spaces',
              description:
                'Chosen by the client for one cluster, for example a UUID: repeats create nothing.',
            }),
          ),
        }),
        querystring: DryRunQuery,
        body: ClusterConfiguration,
        response: {
          200: ClusterDryRun,
          201: ClusterCreated,
          ...errorReplies(400, 401, 403, 404, 409, 503, 507),
        },
      },
    },
    async (request, reply) => {
      const signal = waitFor(request, reply)
      if (request.query.dryRun === true) {
        request.auditNote = 'dry run, nothing is created'
        return reply.code(200).send(await creation.tryOut(request.body, signal))
      }
      const key = request.headers['idempotency-key']
      const { uid, name, isRepeated, problems } = await creation.create(
        request.body,
        { key, by: callerOf(request).userName },
        signal,
      )
      request.auditResource = { name, uid }
      if (isRepeated) request.auditNote = 'repeated, nothing is created'
      return reply.code(201).send({ uid, ...(problems ? { problems } : {}) })
    },
  )

  app.get(
    path,
    {
      // For administrators only: what was posted may contain secrets that are not marked as such.
      config: { hasEtag: true, access: 'admin' },
      schema: {
        operationId: 'getCluster',
        tags,
        summary: 'The configuration of the cluster: what was posted, with all changes that were accepted',
        description:
          'Also a change that waits. Values of sensitive variables are masked. Send the ETag in If-Match with a change, so that it is refused if another one came between.',
        response: { 200: ClusterConfiguration, ...notModified, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const { document, etag } = reading.posted()
      void reply.header('etag', etag)
      if (matchesEtag(request, etag)) return reply.code(304).send(null)
      return document
    },
  )

  app.delete(
    path,
    {
      config: {
        hasEtag: true,
        access: 'admin',
        audit: { action: 'delete', kind: 'cluster', changes },
      },
      schema: {
        operationId: 'deleteCluster',
        tags,
        summary: 'Delete the cluster of this host',
        description:
          'Ends a provisioning too. Kubernetes is taken from the host, and what it has changed there; content stays. The cluster is there until GET answers 404.',
        response: { 204: NoContent, ...errorReplies(401, 403, 404, 507) },
      },
    },
    async (request, reply) => {
      requireTag(request.headers['if-match'], reading.posted().etag)
      request.auditResource = remove()
      return reply.code(204).send(null)
    },
  )

  app.get(
    `${path}/details`,
    {
      // A HEAD request would be a delivery too.
      exposeHeadRoute: false,
      config: {
        access: 'viewer',
        audit: { action: 'activity', kind: 'kubeconfig', when: ({ auditNote }) => auditNote !== '' },
      },
      schema: {
        operationId: 'getClusterDetails',
        tags,
        summary: 'The cluster: its state, conditions, steps, nodes and services',
        description:
          'Administrators also get the kubeconfig of the administrator of Kubernetes, once there is one; the first delivery in a session is in the audit trail.',
        querystring: Type.Object({
          kubeconfig: Type.Optional(
            Type.Boolean({
              default: true,
              description: 'With false it is left out, and nothing is delivered.',
            }),
          ),
        }),
        response: { 200: ClusterDetails, ...errorReplies(400, 401, 404) },
      },
    },
    async (request) => {
      const { role, sessionUid } = callerOf(request)
      const { details, isFirstDelivery } = await reading.details(
        role === 'admin' && request.query.kubeconfig !== false ? { sessionUid } : undefined,
      )
      if (isFirstDelivery) {
        request.auditNote = 'with the kubeconfig'
        request.auditResource = { name: details.metadata.name, uid: details.metadata.id }
      }
      return details
    },
  )
}
