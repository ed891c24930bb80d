import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { callerOf, authorizeByRole, identifyByToken } from '../../api/guard.ts'
import { waitingEnd } from '../../api/request-end.ts'
import type { ExaminationCaller } from '../examinations.ts'
import { scopeOf, namedProject } from './scope.ts'
import type { Authorize, Caller, Decision, Identify } from '../../api/access.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { projectNotFound } from '../projects/projects.ts'
import type { ProjectStore } from '../projects/store.ts'
import type { HostParts } from '../hosts/hosts.ts'
import type { HostRecord } from '../hosts/store.ts'
import type { Keys } from '../keys/keys.ts'
import { highest, type SignedIn, type UserParts } from '../users/users.ts'

/** The caller of an examination; the examination ends with the session or the connection. */
export const examinationCallerOf = (request: FastifyRequest, reply: FastifyReply): ExaminationCaller => ({
  projectUid: scopeOf(request),
  name: callerOf(request).userName,
  signal: waitingEnd(request, reply),
})

/** Identifies users and hosts by their tokens, and users by API keys where there is no token. */
export const createIdentify = ({
  authenticate,
  authenticateHost,
  userOf,
  keys,
}: Pick<UserParts, 'authenticate' | 'userOf'> & {
  readonly authenticateHost: HostParts['authenticate']
  readonly keys: Pick<Keys, 'findValid'>
}): Identify => {
  const byToken = identifyByToken((token) => {
    const user = authenticate(token)
    return user ? toCaller(user, 'user', user.sessionUid) : toHostCaller(authenticateHost(token))
  })
  return (request) => {
    const apiKey = request.headers.apikey
    if (typeof apiKey !== 'string' || request.headers.authorization !== undefined) return byToken(request)
    const key = keys.findValid(apiKey)
    const user = key && userOf(key.userUid)
    return user && toCaller(user, 'key', key.uid)
  }
}

const toHostCaller = (host: HostRecord | undefined): Caller | undefined =>
  host && { userName: host.name, uid: host.uid, kind: 'host', sessionUid: undefined, role: 'viewer' }

/**
 * The host behind a request on a route for hosts, which acts for itself alone.
 * @throws AppError NotFound for the uid of another host
 */
export function ownUid(request: FastifyRequest): string {
  const { uid = '' } = callerOf(request)
  if ((request.params as { readonly uid?: unknown }).uid !== uid)
    throw new AppError(
      generalErrors.NotFound,
      'a host may only speak for itself, and this uid is not its own',
    )
  return uid
}

const toCaller = ({ email, uid, role }: SignedIn, kind: 'user' | 'key', sessionUid: string): Caller => ({
  userName: email,
  uid,
  kind,
  sessionUid,
  // The role for the tenant; `createAuthorize` refuses a user who has none.
  role: role ?? 'viewer',
})

/** For routes that a key may not use: it makes no keys, and no way to a password. */
export const refuseKeys: onRequestHookHandler = (request, _reply, done) => {
  done(
    request.caller?.kind === 'key'
      ? new AppError(generalErrors.Forbidden, 'this cannot be done with an API key; sign in')
      : undefined,
  )
}

/** Roles of users by their uids: for the tenant, or in a project. */
type RolesOfUsers = readonly { readonly userId: string; readonly roles: readonly string[] }[]

/**
 * Refuses a key that makes administrators, or changes the roles of its own user: such roles would outlive the key.
 * @throws AppError Forbidden
 */
export function refuseRolesByKey(request: FastifyRequest, before: RolesOfUsers, after: RolesOfUsers): void {
  const caller = callerOf(request)
  if (caller.kind !== 'key') return
  const rolesIn = (users: RolesOfUsers, uid: string) =>
    new Set(users.filter(({ userId }) => userId === uid).flatMap(({ roles }) => roles))
  for (const { userId } of after) {
    const [had, gets] = [rolesIn(before, userId), rolesIn(after, userId)]
    if (gets.has('admin') && !had.has('admin'))
      throw new AppError(generalErrors.Forbidden, 'an API key makes no administrators; sign in')
    if (userId === caller.uid && [...gets].some((role) => !had.has(role)))
      throw new AppError(generalErrors.Forbidden, 'an API key gives its own user no roles; sign in')
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * On the platform: `both` counts in the project that the request names, or in the tenant without one. `own` is what any user sees or does
     * for itself, with a role for the tenant, in some projects only, or without one. The default is the tenant.
     */
    scope?: 'tenant' | 'both' | 'own'
  }
}

/**
 * Decides by the role in the scope of the request. Users, keys, projects and tokens are the tenant's in every scope, so their routes need a
 * role for the tenant. A project that the request names has to be one in which the caller has a role; a role for the tenant counts in each.
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
    // The scope of a host is itself.
    if (caller.kind === 'host' || access === 'host') return authorizeByRole(request, caller, access)
    const isPerson = caller.kind === 'user' || caller.kind === 'key'
    const ofTenant = isPerson ? roleOf(caller.uid ?? '') : caller.role
    let project: string | undefined
    try {
      project = namedProject(request)
    } catch (error) {
      if (error instanceof AppError) return { refusal: error }
      throw error
    }
    const inProject =
      project !== undefined && isPerson ? highest(projects.rolesOf(caller.uid ?? '', project)) : undefined
    const isKnown = project === undefined || (projects.has(project) && (ofTenant ?? inProject) !== undefined)
    if (!isKnown) return { refusal: projectNotFound() }
    const { scope } = request.routeOptions.config
    // Without a project, or where it does not count, only the role for the tenant does.
    const here = [ofTenant, scope === 'both' ? inProject : undefined].filter((role) => role !== undefined)
    const role = highest(here) ?? (scope === 'own' ? 'viewer' : undefined)
    if (role === undefined)
      return { refusal: new AppError(generalErrors.Forbidden, 'this user has no role for the tenant') }
    const decided = { ...caller, role, projectUid: scope === 'both' ? project : undefined }
    return { caller: decided, ...authorizeByRole(request, decided, access) }
  }
