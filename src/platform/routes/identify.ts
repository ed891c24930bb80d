import type { Authorize, Caller, Decision, Identify } from '../../api/access.ts'
import { authorizeByRole, identifyByToken } from '../../api/guard.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { projectNotFound } from '../projects/projects.ts'
import type { ProjectStore } from '../projects/project-store.ts'
import type { UserParts } from '../users/create-users.ts'
import { namedProject } from './scope.ts'

/** Identifies users by their tokens. */
export const createIdentify = ({ authenticate }: Pick<UserParts, 'authenticate'>): Identify =>
  identifyByToken((token): Caller | undefined => {
    const user = authenticate(token)
    // The role is that for the tenant; `createAuthorize` refuses a user who has none.
    return (
      user && {
        ...{ userName: user.email, uid: user.uid, kind: 'user', sessionUid: undefined },
        role: user.role ?? 'viewer',
      }
    )
  })

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
    const hasTenantRole = caller.kind !== 'user' || roleOf(caller.uid ?? '') !== undefined
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
