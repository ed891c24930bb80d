import type { FastifyRequest } from 'fastify'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  clearTokenCookies,
  findCookie,
  refreshCookie,
  setTokenCookies,
  callerOf,
  requireSameOrigin,
  sessionCallerOf,
} from '../api/guard.ts'
import { errorReplies, NoContent } from '../api/schemas.ts'
import { Uid, uidOf } from '../base/uid.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import { listOf } from '../lists/page.ts'
import { listParameters, parseListQuery } from '../lists/query.ts'
import type { AccountKeys } from './ssh-keys.ts'
import { type Login, type PasswordChange, typedUserName } from './login.ts'
import {
  CurrentUser,
  LoginBody,
  LoginQuery,
  LoginReply,
  PasswordResetBody,
  RenewalBody,
  RenewalQuery,
  SessionItem,
  UserSpec,
  UserToken,
} from './schemas.ts'
import type { TokenPair } from './sessions.ts'
import { type SessionAccess, sessionList } from './session-access.ts'

export interface AuthRoutesOptions {
  readonly login: Login
  readonly passwordChange: PasswordChange
  readonly sessions: SessionAccess
  readonly accountKeys: AccountKeys
  readonly listTokens: ContinueTokens
  /** Whether an account of this name is in the local files. */
  readonly isKnownUser: (name: string) => boolean
  /** Monotonic milliseconds. */
  readonly monotonic: () => number
}

/** Login, renewal, logout, password and sessions: `/v1/users/…`. */
export const authRoutes: FastifyPluginAsyncTypebox<AuthRoutesOptions> = async (app, options) => {
  const { login, passwordChange, sessions, accountKeys, listTokens, isKnownUser, monotonic } = options

  /** Notes user and session for the trail and the journal. */
  const noteSession = (request: FastifyRequest, tokens: TokenPair) => {
    request.caller = sessions.callerOf(tokens) ?? null
    request.auditResource = { name: request.caller?.userName, uid: request.caller?.sessionUid }
  }

  /** The facts of a request for a password check. */
  const origin = (request: FastifyRequest) => ({
    address: request.peer.address,
    ref: request.id,
    // When the last byte has arrived: otherwise a client that sends slowly would use up the delay before PAM starts.
    arrivedAt: monotonic(),
    onKnown: (name: string) => {
      request.auditActor = name
    },
    onProven: () => {
      request.isProven = true
    },
    hasOwnRecord: () => request.hasOwnRecord(),
  })

  /** The account named in an unvalidated body. An account of a directory is known only after a login attempt. */
  const knownUser = (body: unknown): string => {
    const name = typedUserName(body)
    return isKnownUser(name) ? name : ''
  }

  app.post(
    '/v1/users/default/login',
    {
      config: {
        access: 'open',
        bucket: 'login',
        audit: {
          action: 'activity',
          kind: 'session',
          changes: ofSession,
          actor: ({ body }) => knownUser(body),
          bestEffort: true,
        },
      },
      schema: {
        operationId: 'login',
        tags: ['users'],
        summary: 'Log in with an operating-system account',
        querystring: LoginQuery,
        body: LoginBody,
        response: { 200: LoginReply, ...errorReplies(400, 401, 429, 500) },
      },
    },
    async (request, reply) => {
      const { username: userName, password } = request.body
      const { setCookie, extendedSession = false } = request.query
      const { tokens, isFirstLogin } = await login.login(
        { userName, password, ...origin(request), onAsked: () => request.noteAudit() },
        extendedSession,
      )
      noteSession(request, tokens)
      if (setCookie !== false) setTokenCookies(reply, tokens)
      return { Token: onTheWire(tokens), IsFirstLogin: isFirstLogin }
    },
  )

  /** The refresh token of an unvalidated body. */
  const refreshTokenOf = (request: FastifyRequest): string | undefined => {
    const { refreshToken } = (request.body ?? {}) as { readonly refreshToken?: unknown }
    return typeof refreshToken === 'string' && refreshToken !== ''
      ? refreshToken
      : findCookie(request, refreshCookie)
  }

  app.post(
    '/v1/users/default/token/renewal',
    {
      // A token has a few hundred bytes, and this body is read even when a client exceeds its rate.
      bodyLimit: 16_384,
      config: {
        access: 'open',
        holder: (request) => sessions.holderOfRefresh(refreshTokenOf(request) ?? ''),
        audit: { action: 'activity', kind: 'session', changes: ofSession, bestEffort: true },
      },
      schema: {
        operationId: 'renewToken',
        tags: ['users'],
        summary: 'Exchange a refresh token for a new pair of tokens',
        querystring: RenewalQuery,
        body: RenewalBody,
        response: { 200: UserToken, ...errorReplies(400, 401, 403) },
      },
    },
    async (request, reply) => {
      const inBody = request.body?.refreshToken || undefined
      const inCookie = inBody === undefined ? findCookie(request, refreshCookie) : undefined
      if (inCookie !== undefined) requireSameOrigin(request)
      const token = inBody ?? inCookie
      if (token === undefined)
        throw new AppError(generalErrors.BadRequest, 'refreshToken is missing', {
          details: { field: 'refreshToken' },
        })
      const tokens = await sessions.renew(token, request.query.extendedSession ?? false)
      noteSession(request, tokens)
      if (inCookie !== undefined) setTokenCookies(reply, tokens)
      return onTheWire(tokens)
    },
  )

  app.post(
    '/v1/users/default/logout',
    {
      config: {
        access: 'viewer',
        servedInReset: true,
        audit: {
          action: 'activity',
          kind: 'session',
          changes: ofSession,
          resource: ({ caller }) => ({ name: caller?.userName, uid: caller?.sessionUid }),
          bestEffort: true,
        },
      },
      schema: {
        operationId: 'logout',
        tags: ['users'],
        summary: 'End the session of this token',
        response: { 200: Type.Object({}), ...errorReplies(400, 401, 403) },
      },
    },
    async (request, reply) => {
      sessions.logout(sessionCallerOf(request))
      clearTokenCookies(reply)
      return {}
    },
  )

  app.post(
    '/v1/users/default/password/reset',
    {
      config: {
        access: 'open',
        optionalSession: true,
        bucket: 'login',
        audit: {
          action: 'update',
          kind: 'user',
          changes: 'a password is a secret',
          actor: ({ body }) => knownUser(body),
          resource: ({ body, caller, auditActor }) => ({
            name: typedUserName(body) === '' ? caller?.userName : auditActor || knownUser(body),
          }),
        },
      },
      schema: {
        operationId: 'resetPassword',
        tags: ['users'],
        summary: 'Change your own password; with username, also without a token, for an expired password',
        body: PasswordResetBody,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 429, 500, 503, 507) },
      },
    },
    async (request, reply) => {
      const { username, oldPassword, newPassword } = request.body
      const userName = username || sessionCallerOf(request).userName
      const isLoggedIn = request.caller?.userName === userName
      const ended = await passwordChange.change(
        { userName, password: oldPassword, newPassword, ...origin(request) },
        isLoggedIn,
      )
      request.auditNote = `${ended} sessions ended`
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/v1/users/current',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getCurrentUser',
        tags: ['users'],
        summary: 'Show the user of this token',
        response: { 200: CurrentUser, ...errorReplies(401) },
      },
    },
    async (request) => {
      const { userName, role } = callerOf(request)
      return {
        userName,
        role: role === 'admin' ? ('admin' as const) : ('viewer' as const),
        disablePasswordUpdate: false,
        sshKeys: [...accountKeys.of(userName)],
      }
    },
  )

  app.patch(
    '/v1/users/current',
    {
      config: {
        access: 'viewer',
        bucket: 'login',
        servedInReset: true,
        audit: {
          action: 'update',
          kind: 'user',
          changes: 'the note has the fingerprints of the keys',
          resource: ({ caller }) => ({ name: caller?.userName }),
        },
      },
      schema: {
        operationId: 'updateCurrentUser',
        tags: ['users'],
        summary: 'Set the SSH keys of your own account',
        description:
          'They are written with the rights of the account, into a file of its own beside authorized_keys. A login of the last five minutes, or the password, is needed, since a key outlives a stolen token.',
        body: UserSpec,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 409, 429, 500, 503, 507) },
      },
    },
    async (request, reply) => {
      const change = await accountKeys.change(sessionCallerOf(request), request.body, origin(request))
      request.auditNote =
        change === undefined
          ? 'nothing differs'
          : change.fingerprints.length === 0
            ? 'no keys'
            : `keys ${change.fingerprints.join(', ')}`
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/v1/users/sessions',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listSessions',
        tags: ['users'],
        summary: 'List your own sessions; for an administrator, the sessions of all users',
        querystring: listParameters(sessionList),
        response: { 200: listOf(SessionItem), ...errorReplies(400, 401) },
      },
    },
    async (request) => {
      const query = parseListQuery(request.query, sessionList, { tokens: listTokens })
      return sessions.list(callerOf(request), query)
    },
  )

  app.delete(
    '/v1/users/sessions/:uid',
    {
      config: {
        access: 'viewer',
        servedInReset: true,
        audit: {
          action: 'delete',
          kind: 'session',
          changes: ofSession,
          resource: ({ params }) => ({ uid: uidOf((params as { uid: string }).uid) }),
          bestEffort: true,
        },
      },
      schema: {
        operationId: 'endSession',
        tags: ['users'],
        summary: 'End one of your own sessions; an administrator may end any session',
        params: Type.Object({ uid: Uid }),
        response: { 204: NoContent, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      sessions.end(callerOf(request), request.params.uid)
      return reply.code(204).send(null)
    },
  )
}

/** Why records of sessions say no more. */
const ofSession = 'the record names the user and the session, which have no values'

const onTheWire = ({ access, refresh }: TokenPair) => ({ Authorization: access, RefreshToken: refresh })
