import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { requestEnd, keepOpen } from '../../api/request-end.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { cloudAccountList, toVendorAccount, type CloudAccounts } from './accounts.ts'
import {
  VendorAccount,
  VendorAccountCredentials,
  VendorAccountEntity,
  EdgeNativeCloudConfig,
  VendorCloudConfig,
  VendorCloudConfigEntity,
  EdgeNativeMachine,
  Machine,
} from './schemas.ts'
import { CreatedUid } from '../schemas.ts'
import { scopeOf } from '../requests/scope.ts'
import { listInMemory } from '../../lists/memory.ts'
import { cloudConfigList, type CloudConfigs } from './configs.ts'
import { etagOf, type Clusters } from '../clusters/clusters.ts'
import {
  type EdgePool,
  edgeMachineList,
  machineList,
  withCondition,
  type MachineProvider,
} from './machines.ts'

interface CloudRoutesOptions {
  readonly accounts: CloudAccounts
  readonly listTokens: ContinueTokens
}

const Params = Type.Object({ uid: Uid })
const kind = 'cloudAccount'

/** Accounts of the cloud: `/v1/clouds/vendor/account…` and `/v1/cloudaccounts/vendor…`. */
export const cloudRoutes: FastifyPluginAsyncTypebox<CloudRoutesOptions> = async (
  app,
  { accounts, listTokens },
) => {
  const tags = ['clouds']
  const path = '/v1/cloudaccounts/vendor'
  // An account never changes; it may be deleted.
  const writable = (request: FastifyRequest) =>
    accounts.get((request.params as { readonly uid: string }).uid, scopeOf(request)).uid

  const changes = (uid: string, request: FastifyRequest) =>
    toVendorAccount(accounts.get(uid, scopeOf(request)))

  app.post(
    '/v1/clouds/vendor/account/validate',
    {
      config: {
        access: 'operator',
        scope: 'both',
        audit: { action: 'action', kind, changes: 'nothing is kept' },
      },
      schema: {
        operationId: 'validateVendorAccount',
        tags,
        summary: 'Ask the cloud whether it accepts credentials; nothing is kept',
        description:
          'The id and the secret of an application credential of OpenStack. The configuration has the address of the cloud. Without an answer of the cloud in five seconds: 503.',
        body: VendorAccountCredentials,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      await accounts.validate(request.body, requestEnd(request, reply))
      return reply.code(204).send(null)
    },
  )

  app.post(
    path,
    {
      config: { access: 'admin', scope: 'both', audit: { action: 'create', kind, changes } },
      schema: {
        operationId: 'createVendorAccount',
        tags,
        summary: 'Keep an account whose credentials the cloud accepts',
        description: 'The secret is sealed, and no reply has it.',
        body: VendorAccountEntity,
        response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 404, 409, 503) },
      },
    },
    async (request, reply) => {
      const uid = await accounts.create(request.body, scopeOf(request), requestEnd(request, reply))
      request.auditResource = { uid, name: request.body.metadata.name }
      return reply.code(201).send({ uid })
    },
  )

  app.get(
    path,
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listVendorAccounts',
        tags,
        summary: 'List the cloud accounts of the scope, the newest first',
        querystring: listParameters(cloudAccountList),
        response: { 200: listOf(VendorAccount), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const bound = [projectUid]
      const query = parseListQuery(request.query, cloudAccountList, { tokens: listTokens, bound })
      return accounts.list.page(query, accounts.inScope(projectUid))
    },
  )

  app.get(
    `${path}/:uid`,
    {
      config: { writable, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getVendorAccount',
        tags,
        summary: 'A cloud account, its secret masked',
        params: Params,
        response: { 200: VendorAccount, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => toVendorAccount(accounts.get(request.params.uid, scopeOf(request))),
  )

  app.delete(
    `${path}/:uid`,
    {
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: {
          action: 'delete',
          kind,
          changes,
          resource: ({ params }) => ({ uid: uidOf((params as { readonly uid?: unknown }).uid) }),
        },
      },
      schema: {
        operationId: 'deleteVendorAccount',
        tags,
        summary: 'Delete a cloud account that no cloud configuration uses',
        params: Params,
        response: { 204: NoContent, ...errorReplies(401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const projectUid = scopeOf(request)
      const { uid, name } = accounts.get(request.params.uid, projectUid)
      request.auditResource = { uid, name }
      accounts.remove(uid, projectUid)
      return reply.code(204).send(null)
    },
  )
}

interface CloudConfigRoutesOptions {
  readonly clusters: Pick<Clusters, 'get' | 'showConfig'>
  readonly edgeMachines: Pick<MachineProvider<undefined, EdgePool, EdgeNativeMachine>, 'machines'>
  readonly configs: CloudConfigs
  readonly listTokens: ContinueTokens
}

const ConfigParams = Type.Object({ configUid: Uid })
const PoolParams = Type.Object({ configUid: Uid, machinePoolName: Type.String({ maxLength: 256 }) })

/** Cloud configurations: of clusters, `/v1/cloudconfigs/edge-native…`, and of a cloud, `/v1/cloudconfigs/vendorke…`. */
export const cloudConfigRoutes: FastifyPluginAsyncTypebox<CloudConfigRoutesOptions> = async (
  app,
  { clusters, edgeMachines, configs, listTokens },
) => {
  const tags = ['spectroclusters']
  // A configuration of a cloud never changes; it may be deleted.
  const writable = (request: FastifyRequest) =>
    configs.get((request.params as { readonly configUid: string }).configUid, scopeOf(request)).uid

  app.get(
    '/v1/cloudconfigs/edge-native/:configUid',
    {
      config: { hasEtag: true, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getEdgeNativeCloudConfig',
        tags,
        summary: 'The network, the settings and the pool of a cluster',
        description: 'The uid names the cluster.',
        params: ConfigParams,
        response: { 200: EdgeNativeCloudConfig, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const cluster = clusters.get(request.params.configUid, scopeOf(request))
      return reply.header('etag', etagOf(cluster)).send(clusters.showConfig(cluster))
    },
  )

  app.get(
    '/v1/cloudconfigs/edge-native/:configUid/machinePools/:machinePoolName/machines',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listEdgeNativeMachines',
        tags,
        summary: 'List the hosts of a machine pool as machines, the newest first',
        description: 'The uid names the cluster; each machine has the uid of its host.',
        params: PoolParams,
        querystring: listParameters(edgeMachineList),
        response: { 200: listOf(EdgeNativeMachine), ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const { configUid, machinePoolName: name } = request.params
      const bound = [projectUid, configUid, name]
      const query = parseListQuery(request.query, edgeMachineList, { tokens: listTokens, bound })
      const cluster = clusters.get(configUid, projectUid)
      // A host is in memory anyway.
      const read = { signal: request.sessionEnd, hold: () => undefined }
      const machines = await edgeMachines.machines({ cluster, name }, read)
      return listInMemory(machines, query, edgeMachineList, (machine) => machine)
    },
  )

  const clouds = ['clouds']
  const changes = (uid: string, request: FastifyRequest) => configs.show(configs.get(uid, scopeOf(request)))
  const path = '/v1/cloudconfigs/vendorke'

  app.post(
    path,
    {
      config: {
        access: 'operator',
        scope: 'both',
        audit: { action: 'create', kind: 'cloudConfig', changes },
      },
      schema: {
        operationId: 'createVendorCloudConfig',
        tags: clouds,
        summary: 'Name pools of servers of a cloud, each by its tags',
        body: VendorCloudConfigEntity,
        response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const uid = configs.create(request.body, scopeOf(request))
      request.auditResource = { uid, name: request.body.metadata.name }
      return reply.code(201).send({ uid })
    },
  )

  app.get(
    path,
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listVendorCloudConfigs',
        tags: clouds,
        summary: 'List the cloud configurations of the scope, the newest first',
        querystring: listParameters(cloudConfigList),
        response: { 200: listOf(VendorCloudConfig), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const bound = [projectUid]
      const query = parseListQuery(request.query, cloudConfigList, { tokens: listTokens, bound })
      return configs.list.page(query, configs.inScope(projectUid))
    },
  )

  app.get(
    `${path}/:configUid`,
    {
      config: { writable, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getVendorCloudConfig',
        tags: clouds,
        summary: 'A cloud configuration: its account and its pools',
        params: ConfigParams,
        response: { 200: VendorCloudConfig, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => configs.show(configs.get(request.params.configUid, scopeOf(request))),
  )

  app.delete(
    `${path}/:configUid`,
    {
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: {
          action: 'delete',
          kind: 'cloudConfig',
          changes,
          resource: ({ params }) => ({ uid: uidOf((params as { readonly configUid?: unknown }).configUid) }),
        },
      },
      schema: {
        operationId: 'deleteVendorCloudConfig',
        tags: clouds,
        summary: 'Delete a cloud configuration; nothing changes in the cloud',
        params: ConfigParams,
        response: { 204: NoContent, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const projectUid = scopeOf(request)
      const { uid, name } = configs.get(request.params.configUid, projectUid)
      request.auditResource = { uid, name }
      configs.remove(uid, projectUid)
      return reply.code(204).send(null)
    },
  )

  app.get(
    `${path}/:configUid/machinePools/:machinePoolName/machines`,
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listVendorMachines',
        tags: clouds,
        summary: 'List the servers of a machine pool as machines, the newest first',
        description:
          'Read from the cloud at most every ten seconds, however many ask. Where the cloud is slow they are as they were, for five minutes, and a condition of each says how long ago; then 503.',
        params: PoolParams,
        querystring: listParameters(machineList),
        response: { 200: listOf(Machine), ...errorReplies(400, 401, 403, 404, 409, 503) },
      },
    },
    async (request, reply) => {
      const projectUid = scopeOf(request)
      const { configUid, machinePoolName: name } = request.params
      const bound = [projectUid, configUid, name]
      const query = parseListQuery(request.query, machineList, { tokens: listTokens, bound })
      keepOpen(reply)
      const { machines, condition } = await configs.machines(configs.get(configUid, projectUid), name)
      return listInMemory(machines, query, machineList, (machine) =>
        condition === undefined ? machine : withCondition(machine, condition),
      )
    },
  )
}
