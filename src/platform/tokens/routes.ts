import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listInMemory } from '../../lists/memory.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { tokenList, type RegistrationTokens } from './tokens.ts'
import {
  EdgeToken,
  EdgeTokenActiveState,
  EdgeTokenCreated,
  EdgeTokenEntity,
  EdgeTokenUpdate,
} from './schemas.ts'

export interface RegistrationTokenRoutesOptions {
  readonly tokens: RegistrationTokens
  readonly listTokens: ContinueTokens
}

const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** Registration tokens of hosts: `/v1/edgehosts/tokens…`, for administrators of the tenant. */
export const registrationTokenRoutes: FastifyPluginAsyncTypebox<RegistrationTokenRoutesOptions> = async (
  app,
  { tokens, listTokens },
) => {
  /** Has the record name the changed token. */
  function named(request: FastifyRequest): void {
    const { uid } = request.params as { readonly uid: string }
    request.auditResource = { uid, name: tokens.get(uid).name }
  }
  const changes = (uid: string) => tokens.toEdgeToken(tokens.get(uid))
  const tags = ['edgehosts']
  const writable = (request: FastifyRequest) => {
    const { uid, labels, annotations, projectUid, expiresAt, maximumHosts, isActive } = tokens.get(
      (request.params as { readonly uid: string }).uid,
    )
    return [uid, labels, annotations, projectUid, expiresAt, maximumHosts, isActive]
  }
  const path = '/v1/edgehosts/tokens'

  app.post(
    path,
    {
      config: { access: 'admin', audit: { action: 'create', kind: 'registrationToken', changes } },
      schema: {
        operationId: 'createRegistrationToken',
        tags,
        summary: 'Make a token with which hosts are registered; it is shown only here',
        body: EdgeTokenEntity,
        response: { 201: EdgeTokenCreated, ...errorReplies(400, 401, 403, 409) },
      },
    },
    async (request, reply) => {
      const made = tokens.create(request.body)
      request.auditResource = { uid: made.uid, name: request.body.metadata.name }
      return reply.code(201).send(made)
    },
  )

  app.get(
    path,
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listRegistrationTokens',
        tags,
        summary: 'List registration tokens, the newest first',
        querystring: listParameters(tokenList),
        response: { 200: listOf(EdgeToken), ...errorReplies(400, 401, 403) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, tokenList, { tokens: listTokens })
      return listInMemory(tokens.all(), query, tokenList, tokens.toEdgeToken)
    },
  )

  app.get(
    `${path}/:uid`,
    {
      config: { writable, access: 'admin' },
      schema: {
        operationId: 'getRegistrationToken',
        tags,
        summary: 'A registration token, with its first eight characters',
        params: Params,
        response: { 200: EdgeToken, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => tokens.toEdgeToken(tokens.get(request.params.uid)),
  )

  app.put(
    `${path}/:uid`,
    {
      config: {
        writable,
        access: 'admin',
        audit: { action: 'update', kind: 'registrationToken', resource, changes },
      },
      schema: {
        operationId: 'updateRegistrationToken',
        tags,
        summary: 'Change project, expiry, number of hosts, labels and annotations of a registration token',
        params: Params,
        body: EdgeTokenUpdate,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      named(request)
      tokens.update(request.params.uid, request.body)
      return reply.code(204).send(null)
    },
  )

  app.put(
    `${path}/:uid/state`,
    {
      config: {
        writable,
        access: 'admin',
        audit: { action: 'update', kind: 'registrationToken', resource, changes },
      },
      schema: {
        operationId: 'setRegistrationTokenState',
        tags,
        summary: 'Accept a registration token, or accept it no more',
        params: Params,
        body: EdgeTokenActiveState,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      named(request)
      tokens.setActive(request.params.uid, request.body.isActive)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    `${path}/:uid`,
    {
      config: {
        writable,
        access: 'admin',
        audit: { action: 'delete', kind: 'registrationToken', resource, changes },
      },
      schema: {
        operationId: 'deleteRegistrationToken',
        tags,
        summary: 'Delete a registration token; hosts that were registered with it stay',
        params: Params,
        response: { 204: NoContent, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      named(request)
      tokens.remove(request.params.uid)
      return reply.code(204).send(null)
    },
  )
}
