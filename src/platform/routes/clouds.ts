import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { requestEnd } from '../../api/request-end.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { cloudAccountList, toVendorAccount } from '../clouds/cloud-account-list.ts'
import type { CloudAccounts } from '../clouds/cloud-accounts.ts'
import { VendorAccount, VendorAccountCredentials, VendorAccountEntity } from '../schemas/cloud-accounts.ts'
import { CreatedUid } from '../schemas/metadata.ts'
import { scopeOf } from './scope.ts'

export interface CloudRoutesOptions {
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
          'The id and the secret of an application credential of OpenStack. The address of the cloud is that of the configuration. Without an answer of the cloud in five seconds: 503.',
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
        ...{ access: 'admin', scope: 'both' },
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
