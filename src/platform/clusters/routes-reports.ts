import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { hidden } from '../../base/described-change.ts'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ClusterParts } from './clusters.ts'
import { ClusterConditions, ClusterHeartbeat, KubeconfigEntity, PacksStatus } from './schemas.ts'
import { ownUid } from '../requests/identify.ts'
import { scopeOf } from '../requests/scope.ts'

const path = '/v1/spectroclusters'
const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})
/** Whether the platform has the kubeconfig of a cluster, in the reply to its heartbeat: a boolean of RFC 9651, which is left out where it has. */
const kubeconfigHeader = 'Edgehost-Kubeconfig'
const largestReport = 262_144
// A kubeconfig of 256 KiB, as JSON writes it.
const largestKubeconfig = 1_048_576

/** Reports of hosts about their clusters, and the kubeconfig that they send. */
export const clusterReportRoutes: FastifyPluginAsyncTypebox<
  Pick<ClusterParts, 'reports' | 'clusters' | 'index'>
> = async (app, { reports, clusters, index }) => {
  const tags = ['spectroclusters']
  const own = (request: FastifyRequest) =>
    reports.ofHost((request.params as { readonly uid: string }).uid, callerOf(request).uid ?? '')
  const clusterOf = (request: FastifyRequest) =>
    callerOf(request).kind === 'host'
      ? own(request)
      : clusters.get((request.params as { readonly uid: string }).uid, scopeOf(request))
  const config = { access: 'host', audit: false } as const
  const changes = (_uid: string, request: FastifyRequest) => ({
    kubeconfig: hidden(reports.kubeconfig(own(request))),
  })
  const writable = (request: FastifyRequest) => reports.sentKubeconfig(clusterOf(request).uid) ?? ''
  const response = { 204: NoContent, ...errorReplies(400, 401, 403, 404) }

  app.put(
    `${path}/:uid/heartbeat`,
    {
      bodyLimit: largestReport,
      // It also ends a deletion.
      config: { ...config, servedOnFullDisk: true },
      schema: {
        operationId: 'updateClusterHeartbeat',
        tags,
        summary: 'The heartbeat of a cluster from its host, each minute and at changes',
        description:
          'A cluster that shall be deleted and is Deleted on its host, with the number of the deletion, is forgotten. Edgehost-Kubeconfig: ?0 in the reply asks for the kubeconfig.',
        params: Params,
        body: ClusterHeartbeat,
        response,
      },
    },
    async (request, reply) => {
      const cluster = own(request)
      await reports.heartbeat(cluster, request.body)
      // A host sends it once; a platform that was restored may not have it.
      if (!cluster.hasKubeconfig) void reply.header(kubeconfigHeader, '?0')
      return reply.code(204).send(null)
    },
  )

  app.patch(
    `${path}/:uid/status/conditions`,
    {
      bodyLimit: largestReport,
      config,
      schema: {
        operationId: 'updateClusterConditions',
        tags,
        summary: 'The conditions of a cluster as its host has them, replaced as a whole',
        params: Params,
        body: ClusterConditions,
        response,
      },
    },
    async (request, reply) => {
      reports.conditions(own(request), request.body)
      return reply.code(204).send(null)
    },
  )

  app.patch(
    `${path}/:uid/packs/status`,
    {
      bodyLimit: largestReport,
      config,
      schema: {
        operationId: 'updateClusterPacksStatus',
        tags,
        summary: 'The rollout state of the packs of a cluster, replaced as a whole',
        params: Params,
        body: PacksStatus,
        response,
      },
    },
    async (request, reply) => {
      reports.packs(own(request), request.body.packs ?? [])
      return reply.code(204).send(null)
    },
  )

  app.patch(
    '/v1/edgehosts/:uid/packs/status',
    {
      bodyLimit: largestReport,
      config,
      schema: {
        operationId: 'updateEdgeHostPacksStatus',
        tags: ['edgehosts'],
        summary: 'The rollout state of the packs of the cluster of a host, replaced as a whole',
        params: Params,
        body: PacksStatus,
        response,
      },
    },
    async (request, reply) => {
      const hostUid = ownUid(request)
      reports.packs(reports.ofHost(index.clusterOn(hostUid)?.uid ?? '', hostUid), request.body.packs ?? [])
      return reply.code(204).send(null)
    },
  )

  app.put(
    `${path}/:uid/assets/kubeconfig`,
    {
      bodyLimit: largestKubeconfig,
      config: {
        writable,
        access: 'host',
        audit: { action: 'update', kind: 'spectrocluster', resource, changes },
      },
      schema: {
        operationId: 'updateClusterKubeconfig',
        tags,
        summary: 'The kubeconfig of a cluster, from its host; at most 256 KiB',
        params: Params,
        body: KubeconfigEntity,
        response,
      },
    },
    async (request, reply) => {
      const cluster = own(request)
      request.auditResource = cluster
      reports.putKubeconfig(cluster, request.body.kubeconfig)
      return reply.code(204).send(null)
    },
  )

  app.get(
    `${path}/:uid/assets/kubeconfig`,
    {
      // A HEAD request would be recorded as if it had been read.
      exposeHeadRoute: false,
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: { action: 'activity', kind: 'spectrocluster', resource },
      },
      schema: {
        operationId: 'getClusterKubeconfig',
        tags,
        summary: 'The kubeconfig of the administrator of Kubernetes; each read is in the audit trail',
        params: Params,
        response: {
          200: {
            description: 'A kubeconfig, YAML.',
            content: { 'application/yaml': { schema: Type.String() } },
          },
          ...errorReplies(401, 403, 404, 409),
        },
      },
    },
    async (request, reply) => {
      const cluster = clusters.get(request.params.uid, scopeOf(request))
      request.auditResource = cluster
      request.auditNote = 'kubeconfig'
      const text = reports.kubeconfig(cluster)
      return reply
        .header('content-type', 'application/yaml')
        .header('content-disposition', `attachment; filename="${cluster.name}.kubeconfig"`)
        .header('cache-control', 'no-store')
        .send(Buffer.from(text) as never)
    },
  )
}
