import type { onRequestHookHandler } from 'fastify'
import type { Authorize, Caller, Decision, Identify } from '../../api/access.ts'
import { authorizeByRole, identifyByToken } from '../../api/guard.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { projectNotFound } from '../projects/projects.ts'
import type { ProjectStore } from '../projects/project-store.ts'
import type { Keys } from '../keys/keys.ts'
import type { SignedIn, UserParts } from '../users/create-users.ts'
import { namedProject } from './scope.ts'

/** Identifies users by their tokens, and by API keys where there is no token. */
export const createIdentify = ({
  authenticate,
  userOf,
  keys,
}: Pick<UserParts, 'authenticate' | 'userOf'> & { readonly keys: Pick<Keys, 'userOf'> }): Identify => {
  const byToken = identifyByToken((token) => toCaller(authenticate(token), 'user'))
  return (request) => {
    const apiKey = request.headers.apikey
    if (typeof apiKey !== 'string' || request.headers.authorization !== undefined) return byToken(request)
    const uid = keys.userOf(apiKey)
    return uid === undefined ? undefined : toCaller(userOf(uid), 'key')
  }
}

const toCaller = (user: SignedIn | undefined, kind: 'user' | 'key'): Caller | undefined =>
  // The role is that for the tenant; `createAuthorize` refuses a user who has none.
  user && {
    ...{ userName: user.email, uid: user.uid, kind, sessionUid: undefined },
    role: user.role ?? 'viewer',
  }

/** For routes that a key may not use: it makes no keys, and no way to a password. */
export const refuseKeys: onRequestHookHandler = (request, _reply, done) => {
  done(
    request.caller?.kind === 'key'
      ? new AppError(generalErrors.Forbidden, 'this cannot be done with an API key; sign in')
      : undefined,
  )
}

/**
 * Decides by the role for the tenant, since users, projects and the platform itself are the tenant's in every scope. A project that the
 * request names has to be one in which the caller has a role.
 */
export const createAuthorize =
  ({
    roleOf,
    projects,
  }: Pick<UserParts, 'roleOf'> & {
    readonly projects: Pick<ProjectStore, 'has' | 'rolesOf'>
  }): Authorize =>
  (request, caller, access): Decision => {
    if (access === 'open') return {}
    const hasTenantRole =
      (caller.kind !== 'user' && caller.kind !== 'key') || roleOf(caller.uid ?? '') !== undefined
    try {
      const project = namedProject(request)
      const mayKnow = (uid: string) => hasTenantRole || projects.rolesOf(caller.uid ?? '', uid).length > 0
      if (project !== undefined && !(projects.has(project) && mayKnow(project)))
        return { refusal: projectNotFound() }
    } catch (error) {
      if (error instanceof AppError) return { refusal: error }
      throw error
    }
    if (!hasTenantRole)
      return { refusal: new AppError(generalErrors.Forbidden, 'this user has no role for the tenant') }
    return authorizeByRole(request, caller, access)
  }
