import { printable } from '../../base/printable.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import type { User } from '../schemas/users.ts'

type Role = User['spec']['roles'][number]

const names: readonly string[] = ['admin', 'operator', 'viewer'] satisfies readonly Role[]

/**
 * Roles as they are typed: `operator`, `admin,viewer`, or `none`.
 * @throws Failure usage
 */
export function parseRoles(text: string): Role[] {
  const roles = text === 'none' ? [] : text.split(',')
  const wrong = roles.find((role) => !names.includes(role))
  if (wrong !== undefined)
    throw new Failure(
      'usage',
      `${printable(wrong) || 'an empty text'} is not a role; roles are ${names.join(', ')}, or none`,
    )
  return [...new Set(roles)] as Role[]
}
