import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listInMemory } from '../../lists/memory.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { keyList, type Keys } from './keys.ts'
import { ApiKey, ApiKeyActiveState, ApiKeyCreated, ApiKeyEntity, ApiKeyUpdate } from './schemas.ts'
import { refuseKeys } from '../requests/identify.ts'

export interface ApiKeyRoutesOptions {
  readonly keys: Keys
  readonly listTokens: ContinueTokens
}

const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** API keys of users: `/v1/apiKeys…`, for administrators of the tenant. A key makes and changes no keys. */
export const apiKeyRoutes: FastifyPluginAsyncTypebox<ApiKeyRoutesOptions> = async (
  app,
  { keys, listTokens },
) => {
  /** Has the record name the changed key. */
  function named(request: FastifyRequest): void {
    const { uid } = request.params as { readonly uid: string }
    request.auditResource = { uid, name: keys.get(uid).name }
  }
  const changes = (uid: string) => keys.toApiKey(keys.get(uid))
  const tags = ['apiKeys']
  const writable = (request: FastifyRequest) => {
    const { uid, labels, annotations, expiresAt, isActive } = keys.get(
      (request.params as { readonly uid: string }).uid,
    )
    return [uid, labels, annotations, expiresAt, isActive]
  }

  app.post(
    '/v1/apiKeys',
    {
      onRequest: refuseKeys,
      config: { access: 'admin', audit: { action: 'create', kind: 'apiKey', changes } },
      schema: {
        operationId: 'createApiKey',
        tags,
        summary: 'Make an API key, with the roles of its user; the key is shown only here',
        body: ApiKeyEntity,
        response: { 201: ApiKeyCreated, ...errorReplies(400, 401, 403, 409) },
      },
    },
    async (request, reply) => {
      const made = keys.create(request.body, callerOf(request).uid)
      request.auditResource = { uid: made.uid, name: request.body.metadata.name }
      return reply.code(201).send(made)
    },
  )

  app.get(
    '/v1/apiKeys',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listApiKeys',
        tags,
        summary: 'List API keys, the newest first',
        querystring: listParameters(keyList),
        response: { 200: listOf(ApiKey), ...errorReplies(400, 401, 403) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, keyList, { tokens: listTokens })
      return listInMemory(keys.all(), query, keyList, keys.toApiKey)
    },
  )

  app.get(
    '/v1/apiKeys/:uid',
    {
      config: { writable, access: 'admin' },
      schema: {
        operationId: 'getApiKey',
        tags,
        summary: 'An API key, with its first eight characters',
        params: Params,
        response: { 200: ApiKey, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => keys.toApiKey(keys.get(request.params.uid)),
  )

  app.put(
    '/v1/apiKeys/:uid',
    {
      onRequest: refuseKeys,
      config: { writable, access: 'admin', audit: { action: 'update', kind: 'apiKey', resource, changes } },
      schema: {
        operationId: 'updateApiKey',
        tags,
        summary: 'Change the expiry, labels and annotations of an API key',
        params: Params,
        body: ApiKeyUpdate,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      named(request)
      keys.update(request.params.uid, request.body)
      return reply.code(204).send(null)
    },
  )

  app.put(
    '/v1/apiKeys/:uid/state',
    {
      onRequest: refuseKeys,
      config: { writable, access: 'admin', audit: { action: 'update', kind: 'apiKey', resource, changes } },
      schema: {
        operationId: 'setApiKeyState',
        tags,
        summary: 'Accept an API key, or accept it no more',
        params: Params,
        body: ApiKeyActiveState,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      named(request)
      keys.setActive(request.params.uid, request.body.isActive)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/v1/apiKeys/:uid',
    {
      onRequest: refuseKeys,
      config: { writable, access: 'admin', audit: { action: 'delete', kind: 'apiKey', resource, changes } },
      schema: {
        operationId: 'deleteApiKey',
        tags,
        summary: 'Delete an API key',
        params: Params,
        response: { 204: NoContent, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      named(request)
      keys.remove(request.params.uid)
      return reply.code(204).send(null)
    },
  )
}
