import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { isAtLeast } from '../../base/role.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { clusterList, toProfileList } from './list.ts'
import type { ClusterHead } from './store.ts'
import { etagOf, type Clusters, type Target } from './clusters.ts'
import {
  ClusterProfileList,
  ClusterProfilesEntity,
  ClusterStatus,
  ClusterValidatorResponse,
  ClusterVariables,
  ClusterVariablesUpdate,
  EdgeNativeClusterConfig,
  EdgeNativeClusterEntity,
  SpectroCluster,
} from './schemas.ts'
import { CreatedUid } from '../schemas.ts'
import { examinationCallerOf } from '../requests/identify.ts'
import { onlyOf, scopeOf } from '../requests/scope.ts'

export interface ClusterRoutesOptions {
  readonly clusters: Clusters
  readonly listTokens: ContinueTokens
}

const path = '/v1/spectroclusters'
const largestBody = 4_194_304
const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => {
  const { uid, configUid } = params as { readonly uid?: unknown; readonly configUid?: unknown }
  return { uid: uidOf(uid ?? configUid) }
}

const changeAccess = {
  hasEtag: true,
  access: 'operator',
  scope: 'both',
} as const
const changeSchema = {
  tags: ['spectroclusters'],
  headers: Type.Object({
    'if-match': Type.Optional(
      Type.String({
        description: 'The ETag of the cluster, or *: the change is refused if another one came between.',
      }),
    ),
  }),
  response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409, 412, 503, 507) },
}
const ApplyQuery = onlyOf({
  cancelDeletion: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Take back a deletion that the host has not started; for administrators.',
    }),
  ),
})
// Another name is refused: with `forcedelete` the host would be waited for.
const DeleteQuery = onlyOf({
  forceDelete: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Forget the cluster without its host, which has to be silent for an hour.',
    }),
  ),
})

const targetOf = (request: FastifyRequest, uid: string): Target => ({
  uid,
  projectUid: scopeOf(request),
  ifMatch: request.headers['if-match'],
})

/** Clusters on edge hosts: `/v1/spectroclusters…`. */
export const clusterRoutes: FastifyPluginAsyncTypebox<ClusterRoutesOptions> = async (
  app,
  { clusters, listTokens },
) => {
  const tags = ['spectroclusters']
  const changes = (uid: string, request: FastifyRequest) => clusters.compared(uid, scopeOf(request))
  const audit = { kind: 'spectrocluster', resource, changes } as const
  const changeConfig = { ...changeAccess, audit: { ...audit, action: 'update' } } as const

  /** @param note of the record beside the differences */
  async function answerChange(
    request: FastifyRequest,
    reply: FastifyReply,
    change: Promise<ClusterHead>,
    note = '',
  ) {
    const cluster = await change
    request.auditResource = cluster
    request.auditNote = note
    return reply.code(204).header('etag', etagOf(cluster)).send(null)
  }

  app.post(
    `${path}/edge-native/validate`,
    {
      bodyLimit: largestBody,
      config: { access: 'operator', scope: 'both', audit: false },
      schema: {
        operationId: 'validateEdgeNativeCluster',
        tags,
        summary: 'Make all checks of a creation, and create nothing',
        body: EdgeNativeClusterEntity,
        response: { 200: ClusterValidatorResponse, ...errorReplies(400, 401, 403, 404, 409, 503, 507) },
      },
    },
    (request, reply) =>
      clusters.validate(request.body, scopeOf(request), examinationCallerOf(request, reply)),
  )

  app.post(
    `${path}/edge-native`,
    {
      bodyLimit: largestBody,
      config: {
        access: 'operator',
        scope: 'both',
        audit: { action: 'create', kind: 'spectrocluster', changes },
      },
      schema: {
        operationId: 'createEdgeNativeCluster',
        tags,
        summary: 'Create a cluster on an edge host, which begins with its next heartbeat',
        description:
          'Everything is checked first, by the rules that the host has; a refusal lists all problems in details.problems.',
        body: EdgeNativeClusterEntity,
        response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 404, 409, 503, 507) },
      },
    },
    async (request, reply) => {
      const caller = examinationCallerOf(request, reply)
      const cluster = await clusters.create(request.body, scopeOf(request), caller)
      request.auditResource = cluster
      return reply.code(201).header('etag', etagOf(cluster)).send({ uid: cluster.uid })
    },
  )

  app.get(
    path,
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listClusters',
        tags,
        summary: 'List the clusters of the scope, the newest first',
        querystring: listParameters(clusterList),
        response: { 200: listOf(SpectroCluster), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const query = parseListQuery(request.query, clusterList, { tokens: listTokens, bound: [projectUid] })
      return clusters.list.page(query, clusters.inScope(projectUid))
    },
  )

  app.get(
    `${path}/:uid`,
    {
      config: { hasEtag: true, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getCluster',
        tags,
        summary: 'A cluster: its desired state, and the reports of its host',
        params: Params,
        response: { 200: SpectroCluster, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const cluster = clusters.get(request.params.uid, scopeOf(request))
      return reply.header('etag', etagOf(cluster)).send(clusters.show(cluster))
    },
  )

  app.get(
    `${path}/:uid/status`,
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getClusterStatus',
        tags,
        summary: 'The state of a cluster, and whether its host answers',
        params: Params,
        response: { 200: ClusterStatus, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => clusters.showStatus(clusters.get(request.params.uid, scopeOf(request))),
  )

  app.get(
    `${path}/:uid/profiles`,
    {
      config: { hasEtag: true, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getClusterProfiles',
        tags,
        summary: 'The cluster profiles of a cluster, as they were at its last change',
        params: Params,
        response: { 200: ClusterProfileList, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const cluster = clusters.get(request.params.uid, scopeOf(request))
      return reply.header('etag', etagOf(cluster)).send(toProfileList(cluster))
    },
  )

  app.put(
    `${path}/:uid/profiles`,
    {
      bodyLimit: largestBody,
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'updateClusterProfiles',
        summary: 'Replace the cluster profiles of a cluster, for example by other versions',
        description:
          'Values that were given before stay, also where a profile has another uid and the same name, or replaces another one; values of variables that are gone are left out.',
        params: Params,
        body: ClusterProfilesEntity,
      },
    },
    (request, reply) => {
      const target = targetOf(request, request.params.uid)
      const change = clusters.setProfiles(target, request.body, examinationCallerOf(request, reply))
      return answerChange(request, reply, change)
    },
  )

  app.get(
    `${path}/:uid/variables`,
    {
      config: { hasEtag: true, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getClusterVariables',
        tags,
        summary: 'The variables of a cluster with their values, sensitive ones masked',
        params: Params,
        response: { 200: ClusterVariables, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const cluster = clusters.get(request.params.uid, scopeOf(request))
      return reply.header('etag', etagOf(cluster)).send(clusters.variablesOf(cluster))
    },
  )

  app.patch(
    `${path}/:uid/variables`,
    {
      bodyLimit: largestBody,
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'updateClusterVariables',
        summary: 'Set values of variables; those that are not named stay',
        description: 'A mask of a reply that is sent back keeps the value.',
        params: Params,
        body: ClusterVariablesUpdate,
      },
    },
    (request, reply) => {
      const target = targetOf(request, request.params.uid)
      const change = clusters.setVariables(target, request.body, examinationCallerOf(request, reply))
      return answerChange(request, reply, change)
    },
  )

  app.post(
    `${path}/:uid/apply`,
    {
      config: { ...changeConfig, audit: { ...audit, action: 'action' } },
      schema: {
        ...changeSchema,
        operationId: 'applyCluster',
        summary: 'Have the host apply the desired state again',
        description:
          'After NewerOnHost, where the platform was restored from a backup, and after DeletedOnHost. It gets a number higher than the one of the host, and drafts of profiles and tags of packs are resolved anew. Where a deletion waits for the host, it is refused (ClusterDeleting); with cancelDeletion=true the deletion is taken back, by administrators, while the host has not started it.',
        params: Params,
        querystring: ApplyQuery,
      },
    },
    async (request, reply) => {
      const isCancelling = request.query.cancelDeletion === true
      const target = targetOf(request, request.params.uid)
      if (isCancelling && !isAtLeast(callerOf(request).role, 'admin'))
        throw new AppError(generalErrors.Forbidden, 'only an administrator takes a deletion back')
      const { deleteRequestedAt } = clusters.get(target.uid, target.projectUid)
      const change = clusters.applyAgain(target, isCancelling, examinationCallerOf(request, reply))
      const note = deleteRequestedAt === undefined ? '' : 'the deletion is cancelled'
      return answerChange(request, reply, change, note)
    },
  )

  app.delete(
    `${path}/:uid`,
    {
      config: {
        hasEtag: true,
        access: 'admin',
        scope: 'both',
        audit: { ...audit, action: 'delete' },
      },
      schema: {
        ...changeSchema,
        operationId: 'deleteCluster',
        summary: 'Delete a cluster; its host does, and then the platform forgets it',
        params: Params,
        querystring: DeleteQuery,
      },
    },
    (request, reply) => {
      const isForced = request.query.forceDelete === true
      const target = targetOf(request, request.params.uid)
      const note = isForced ? 'forgotten without its host' : ''
      return answerChange(request, reply, clusters.remove(target, isForced), note)
    },
  )

  app.put(
    '/v1/cloudconfigs/edge-native/:configUid/clusterConfig',
    {
      bodyLimit: largestBody,
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'updateEdgeNativeClusterConfig',
        summary: 'Replace the NTP servers and SSH keys of a cluster',
        description:
          'Both lists are replaced; one that is left out is empty then. The address of the control plane may be replaced while the host has refused the newest number and accepted none. Other named fields have to be unchanged. The uid names the cluster.',
        params: Type.Object({ configUid: Uid }),
        body: Type.Object(
          { clusterConfig: EdgeNativeClusterConfig },
          { title: 'EdgeNativeCloudClusterConfigEntity' },
        ),
      },
    },
    (request, reply) => {
      const target = targetOf(request, request.params.configUid)
      const change = clusters.setSettings(
        target,
        request.body.clusterConfig,
        examinationCallerOf(request, reply),
      )
      return answerChange(request, reply, change)
    },
  )
}
