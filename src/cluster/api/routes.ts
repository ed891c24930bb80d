import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { matchesEtag } from '../../api/etag.ts'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent, notModified } from '../../api/schemas.ts'
import { attachment } from '../../api/send-file.ts'
import { requireTag } from '../../errors/refused-field.ts'
import type { Creation } from '../desired/creation.ts'
import type { Reading } from './reading.ts'
import { waitingEnd } from '../../api/request-end.ts'
import { DryRunQuery } from './routes-change.ts'
import {
  ClusterConfiguration,
  ClusterCreated,
  ClusterDetails,
  ClusterDryRun,
  ClusterNodes,
  MachinePools,
  PodLogs,
  CertificateDetails,
  RenewalAccepted,
} from '../schemas.ts'
import { ClusterCurrentApplications } from '../packs/schemas.ts'
import { ClusterRevisions } from '../desired/schemas.ts'
import type { Certificates } from './certificates.ts'
import type { PodLogsQuestion } from './pod-logs.ts'

interface ClusterRoutesOptions {
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
              minLength: 1,
              maxLength: 255,
              pattern: '^[\\x21-\\x7e]+$',
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
      const signal = waitingEnd(request, reply)
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
      // For administrators only: the posted configuration may contain secrets that are not marked as such.
      config: { hasEtag: true, access: 'admin' },
      schema: {
        operationId: 'getCluster',
        tags,
        summary: 'The configuration of the cluster, as posted, with all accepted changes',
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
          'Ends a provisioning too. Kubernetes and its changes are removed from the host; content stays. The cluster is there until GET answers 404.',
        response: { 204: NoContent, ...errorReplies(401, 403, 404, 409, 507) },
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

  app.get(
    `${path}/kubeconfig`,
    {
      // A HEAD request would be a delivery too.
      exposeHeadRoute: false,
      config: { access: 'admin', ticket: true, audit: { action: 'activity', kind: 'kubeconfig' } },
      schema: {
        operationId: 'downloadKubeconfig',
        tags,
        summary: 'Download the kubeconfig of the administrator of Kubernetes, for administrators',
        description: 'The same that the details have. Each read is in the audit trail.',
        response: {
          200: {
            description: 'A kubeconfig, YAML.',
            content: { 'application/yaml': { schema: Type.String() } },
          },
          ...errorReplies(401, 403, 404),
        },
      },
    },
    async (request, reply) => {
      const { text, ...cluster } = await reading.kubeconfig()
      request.auditResource = cluster
      return reply
        .header('content-type', 'application/yaml')
        .header('content-disposition', attachment(`${cluster.name}.kubeconfig`))
        .send(Buffer.from(text) as never)
    },
  )
}

interface NodeRoutesOptions {
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

interface ApplicationRoutesOptions {
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
        summary: 'The profiles and packs of the cluster, and the state of each pack',
        description:
          'Packs are installed in the order of their layers and install priorities; packs of a number wait until all before are Available.',
        response: { 200: ClusterCurrentApplications, ...errorReplies(401, 404) },
      },
    },
    async () => options.applications(),
  )
}

interface PodRoutesOptions {
  /** @throws AppError NotFound without a cluster, NoPodLogs, NotReady */
  readonly podLogs: (question: PodLogsQuestion) => Promise<PodLogs>
}

/** Last lines of containers of the cluster. */
export const podRoutes: FastifyPluginAsyncTypebox<PodRoutesOptions> = async (app, { podLogs }) => {
  app.get(
    '/v1/edge-mgmt/cluster/pods/:namespace/:name/logs',
    {
      // Programs write secrets into their logs. A HEAD request would be a read too.
      exposeHeadRoute: false,
      config: { access: 'admin', audit: { action: 'activity', kind: 'pod-logs' } },
      schema: {
        operationId: 'getPodLogs',
        tags: ['cluster'],
        summary: 'The last lines of a container of the cluster, for administrators',
        description:
          'Read from Kubernetes for this reply: at most 20 lines and 4 kB, masked. They are stored nowhere and not sent to a platform; the audit trail has the read without the lines.',
        params: Type.Object({
          namespace: Type.String({ description: 'Of the pod.', maxLength: 63 }),
          name: Type.String({ description: 'Name of the pod.', maxLength: 253 }),
        }),
        querystring: Type.Object({
          container: Type.Optional(
            Type.String({
              maxLength: 63,
              description: 'Container; absent: the one in trouble, otherwise the first.',
            }),
          ),
          previous: Type.Optional(
            Type.Boolean({
              description:
                'Whether the instance before the last start is read; absent: where the container has crashed and runs again.',
            }),
          ),
        }),
        response: { 200: PodLogs, ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const { namespace, name } = request.params
      const { container, previous } = request.query
      request.auditResource = { name: `${namespace}/${name}` }
      const found = await podLogs({
        namespace,
        pod: name,
        ...(container === undefined ? {} : { container }),
        ...(previous === undefined ? {} : { isPrevious: previous }),
      })
      request.auditNote = `container ${found.container}`
      return found
    },
  )
}

interface RevisionRoutesOptions {
  readonly reading: Pick<Reading, 'revisions'>
}

/** Revisions of the cluster. */
export const revisionRoutes: FastifyPluginAsyncTypebox<RevisionRoutesOptions> = async (app, { reading }) => {
  app.get(
    '/v1/edge-mgmt/cluster/revisions',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listClusterRevisions',
        tags: ['cluster'],
        summary: 'Revisions of the cluster: accepted configurations with time, author and outcome',
        description:
          'The newest first; the last 10 are kept, and always the active one and the last two good ones; all of them are given, without listmeta.',
        response: { 200: ClusterRevisions, ...errorReplies(401, 404) },
      },
    },
    async () => reading.revisions(),
  )
}

interface CertificateRoutesOptions {
  readonly certificates: Certificates
}

/** The certificates of Kubernetes, and their renewal. */
export const certificateRoutes: FastifyPluginAsyncTypebox<CertificateRoutesOptions> = async (
  app,
  { certificates },
) => {
  const tags = ['cluster']
  const path = '/v1/edge-mgmt/cluster'

  app.get(
    `${path}/certificates`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getClusterCertificates',
        tags,
        summary: 'The certificates of Kubernetes on this host: their issuers and expiry times',
        description:
          'edgehostd renews the certificates of the control plane by itself; the kubelet renews its client certificate. Authorities are not renewed.',
        response: { 200: CertificateDetails, ...errorReplies(401, 404) },
      },
    },
    async () => certificates.details(),
  )

  app.post(
    `${path}/renew-certificates`,
    {
      config: {
        access: 'admin',
        audit: { action: 'action', kind: 'cluster', changes: 'certificates have no values that anyone sets' },
      },
      schema: {
        operationId: 'renewClusterCertificates',
        tags,
        summary: 'Renew the certificates of the control plane now',
        description:
          'The host does it by itself after the reply; the API server of the cluster is away for some seconds, workloads keep running. While a renewal is under way the reply has its uid, and nothing more is done. See renewal of GET, and the events of the cluster.',
        // A dry run is not possible, so a query that asks for one is refused.
        querystring: Type.Object({}, { additionalProperties: false }),
        response: { 201: RenewalAccepted, ...errorReplies(400, 401, 403, 404, 409, 507) },
      },
    },
    async (request, reply) => {
      const { uid, cluster, isRepeated } = await certificates.renew(callerOf(request).userName)
      request.auditResource = cluster
      request.auditNote = isRepeated ? 'one is under way' : 'renewal of the certificates'
      return reply.code(201).send({
        uid,
        message: isRepeated
          ? 'the certificates are being renewed already'
          : 'the certificates are being renewed',
      })
    },
  )
}
