import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import {
  AuthLogin,
  AuthTokenRevoke,
  PasswordActivation,
  PasswordChange,
  PasswordReset,
  UserToken,
} from './schemas.ts'
import type { SignIn } from './sign-in.ts'

export interface AuthRoutesOptions {
  readonly signIn: SignIn
}

/** Names the user behind a request without a token in its record. */
function nameActor(
  request: FastifyRequest,
  { uid, email }: { readonly uid: string; readonly email: string },
) {
  request.auditActor = email
  request.auditActorUid = uid
}

/** Origin of a request, for the check of its password. */
const origin = (request: FastifyRequest) => ({
  address: request.peer.address,
  ref: request.id,
  onKnown: (user: { readonly uid: string; readonly email: string }) => nameActor(request, user),
  onProven: () => {
    request.isProven = true
  },
  hasOwnRecord: () => request.hasOwnRecord(),
})

/** Reason for the short records of sign-in. */
const changes = 'the record names the user; passwords, links and tokens are secrets'

const noCookie =
  'The platform sets no cookie: setCookie, a parameter of the published API, is accepted and has no effect.'

/** Sign-in of users, and their tokens and passwords: `/v1/auth…`. Tokens in paths are in no log, record or error. */
export const authRoutes: FastifyPluginAsyncTypebox<AuthRoutesOptions> = async (app, { signIn }) => {
  const tags = ['auth']

  app.post(
    '/v1/auth/authenticate',
    {
      config: { access: 'open', audit: { action: 'activity', kind: 'token', changes, bestEffort: true } },
      schema: {
        operationId: 'authenticate',
        tags,
        summary: 'Sign in; the token is valid for 15 minutes',
        description: noCookie,
        body: AuthLogin,
        response: { 200: UserToken, ...errorReplies(400, 401, 429, 503) },
      },
    },
    async (request) => {
      const { emailId: email, password } = request.body
      return {
        Authorization: await signIn.authenticate({ email, password, ...origin(request) }),
        isMfa: false,
      }
    },
  )

  app.get(
    '/v1/auth/refresh/:token',
    {
      // A HEAD request would end the token, and its answer has no room for the new one.
      exposeHeadRoute: false,
      config: { access: 'open', audit: { action: 'activity', kind: 'token', changes, bestEffort: true } },
      schema: {
        operationId: 'refreshToken',
        tags,
        summary: 'Exchange a token that is still valid for a new one; the old one ends',
        description: noCookie,
        params: Type.Object({ token: Type.String() }),
        response: { 200: UserToken, ...errorReplies(401) },
      },
    },
    async (request) => {
      const { token, user } = signIn.refresh(request.params.token)
      nameActor(request, user)
      return { Authorization: token, isMfa: false }
    },
  )

  app.post(
    '/v1/users/auth/tokens/revoke',
    {
      config: {
        access: 'viewer',
        scope: 'own',
        audit: { action: 'activity', kind: 'token', changes, bestEffort: true },
      },
      schema: {
        operationId: 'revokeTokens',
        tags,
        summary: 'End tokens; who has a token may end it',
        body: AuthTokenRevoke,
        response: { 204: NoContent, ...errorReplies(400, 401) },
      },
    },
    async (request, reply) => {
      for (const token of request.body.tokens) signIn.end(token)
      return reply.code(204).send(null)
    },
  )

  app.patch(
    '/v1/auth/password/:passwordToken/activate',
    {
      config: { access: 'open', audit: { action: 'activity', kind: 'user', changes } },
      schema: {
        operationId: 'activateUser',
        tags,
        summary: 'Set a password by a link; the link and every token of the user end',
        params: Type.Object({ passwordToken: Type.String() }),
        body: PasswordActivation,
        response: { 204: NoContent, ...errorReplies(400, 503) },
      },
    },
    async (request, reply) => {
      const { passwordToken } = request.params
      const user = await signIn.activate(passwordToken, request.body.password, request.peer.address)
      nameActor(request, user)
      request.auditResource = { uid: user.uid, name: user.email }
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/auth/user/password/reset',
    {
      config: { access: 'open', audit: { action: 'activity', kind: 'user', changes, bestEffort: true } },
      schema: {
        operationId: 'resetPassword',
        tags,
        summary: 'Ask for a new link; an administrator sees it at the user and hands one out',
        description: 'The answer is the same whether there is such a user or not.',
        body: PasswordReset,
        response: { 204: NoContent, ...errorReplies(400) },
      },
    },
    async (request, reply) => {
      signIn.askForLink(request.body.emailId)
      return reply.code(204).send(null)
    },
  )

  app.patch(
    '/v1/users/password/change',
    {
      config: { access: 'open', audit: { action: 'update', kind: 'user', changes, bestEffort: true } },
      schema: {
        operationId: 'changePassword',
        tags,
        summary: 'Set a new password; every token of the user ends',
        body: PasswordChange,
        response: { 204: NoContent, ...errorReplies(400, 401, 429, 503) },
      },
    },
    async (request, reply) => {
      const { emailId: email, currentPassword: password, newPassword } = request.body
      await signIn.change({ email, password, ...origin(request) }, newPassword)
      return reply.code(204).send(null)
    },
  )
}
