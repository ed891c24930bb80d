import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listInMemory } from '../../lists/memory.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { refuseKeys, refuseRolesByKey } from '../requests/identify.ts'
import { CreatedUid } from '../schemas.ts'
import { ActivationLink, User, UserEntity, UserInfo, UserRoleUids } from './schemas.ts'
import type { PasswordLinks } from './sign-in.ts'
import { userList } from './store.ts'
import { toUser, type Users } from './users.ts'

export interface UserRoutesOptions {
  readonly users: Users
  readonly links: PasswordLinks
  readonly tenantUid: string
  readonly listTokens: ContinueTokens
}

const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** Users of the platform: `/v1/users…`, for administrators of the tenant. */
export const userRoutes: FastifyPluginAsyncTypebox<UserRoutesOptions> = async (app, options) => {
  const { users, links, tenantUid, listTokens } = options
  const tags = ['users']
  const writable = (request: FastifyRequest) => {
    const { uid, labels, annotations, roles } = users.get((request.params as { readonly uid: string }).uid)
    return [uid, labels, annotations, roles]
  }

  const changes = (uid: string) => {
    const { email, roles, labels, annotations } = users.get(uid)
    return { emailId: email, roles, labels, annotations }
  }

  app.post(
    '/v1/users',
    {
      config: { access: 'admin', audit: { action: 'create', kind: 'user', changes } },
      schema: {
        operationId: 'createUser',
        tags,
        summary: 'Make a user, who sets a password by the link that GET of the user shows',
        body: UserEntity,
        response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 409) },
      },
    },
    async (request, reply) => {
      refuseRolesByKey(request, [], [{ userId: '', roles: request.body.spec.roles ?? [] }])
      const uid = users.create(request.body)
      request.auditResource = { uid, name: request.body.spec.emailId }
      return reply.code(201).send({ uid })
    },
  )

  app.get(
    '/v1/users',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'listUsers',
        tags,
        summary: 'List users, the newest first',
        querystring: listParameters(userList),
        response: { 200: listOf(User), ...errorReplies(400, 401, 403) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, userList, { tokens: listTokens })
      return listInMemory(users.all(), query, userList, (user) => toUser(user))
    },
  )

  app.get(
    '/v1/users/info',
    {
      config: { access: 'viewer', scope: 'own' },
      schema: {
        operationId: 'getUserInfo',
        tags,
        summary: 'The user behind the request, and the tenant',
        response: { 200: UserInfo, ...errorReplies(401) },
      },
    },
    async (request) => {
      const { uid = '', userName: emailId, role } = callerOf(request)
      // The local socket has no user.
      const roles = uid === '' ? [role] : [...users.get(uid).roles]
      return { orgName: 'default', tenantUid, userUid: uid, emailId, roles }
    },
  )

  app.get(
    '/v1/users/:uid',
    {
      config: {
        writable,
        access: 'admin',
        // A link to set a password is a secret; it is shown once.
        audit: { action: 'activity', kind: 'user', resource, when: ({ auditNote }) => auditNote !== '' },
      },
      schema: {
        operationId: 'getUser',
        tags,
        summary: 'A user; the first time with the link to set a password',
        params: Params,
        response: { 200: User, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => {
      const user = users.get(request.params.uid)
      // The answer to HEAD would lose the link.
      const isShown = request.method === 'GET' && callerOf(request).kind !== 'key'
      const link = isShown ? links.takeUnshown(user.uid) : undefined
      if (link !== undefined) request.auditNote = 'with the link to set a password'
      return toUser(user, link)
    },
  )

  app.delete(
    '/v1/users/:uid',
    {
      config: { writable, access: 'admin', audit: { action: 'delete', kind: 'user', resource, changes } },
      schema: {
        operationId: 'deleteUser',
        tags,
        summary: 'Delete a user; its tokens end',
        params: Params,
        response: { 204: NoContent, ...errorReplies(401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      request.auditResource = { uid, name: users.get(uid).email }
      users.remove(uid)
      return reply.code(204).send(null)
    },
  )

  app.put(
    '/v1/users/:uid/roles',
    {
      config: { writable, access: 'admin', audit: { action: 'update', kind: 'user', resource, changes } },
      schema: {
        operationId: 'setUserRoles',
        tags,
        summary: 'Set the roles of a user for the tenant, which count in every project too',
        params: Params,
        body: UserRoleUids,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      const { email: name, roles } = users.get(uid)
      request.auditResource = { uid, name }
      refuseRolesByKey(request, [{ userId: uid, roles }], [{ userId: uid, roles: request.body.roles }])
      users.setRoles(uid, request.body.roles)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/users/:uid/activation',
    {
      onRequest: refuseKeys,
      config: {
        access: 'admin',
        audit: { action: 'action', kind: 'user', resource, changes: 'the link is a secret' },
      },
      schema: {
        operationId: 'renewActivationLink',
        tags,
        summary: 'Hand out a new link to set a password, valid for a day; an earlier link ends',
        params: Params,
        response: { 200: ActivationLink, ...errorReplies(401, 403, 404) },
      },
    },
    async (request) => {
      const activationLink = users.renewLink(request.params.uid)
      if (activationLink === '') throw new AppError(generalErrors.NotFound, 'there is no user with this uid')
      return { activationLink }
    },
  )
}
