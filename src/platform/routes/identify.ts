import type { Authorize, Caller, Identify } from '../../api/access.ts'
import { authorizeByRole, identifyByToken } from '../../api/guard.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { UserParts } from '../users/create-users.ts'

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

/** Decides by the role for the tenant. */
export const createAuthorize =
  ({ roleOf }: Pick<UserParts, 'roleOf'>): Authorize =>
  (request, caller, access) => {
    if (access !== 'open' && caller.kind === 'user' && roleOf(caller.uid ?? '') === undefined)
      return { refusal: new AppError(generalErrors.Forbidden, 'this user has no role for the tenant') }
    return authorizeByRole(request, caller, access)
  }
