export type Role = 'viewer' | 'operator' | 'admin'

/** Roles of a user: for the tenant, and in the project that requests name. */
export interface Roles {
  readonly tenant?: Role
  readonly project?: Role
}

/** Callers with a role somewhere. */
export const users = {
  viewer: { tenant: 'viewer' },
  operator: { tenant: 'operator' },
  admin: { tenant: 'admin' },
  elsewhere: {},
  'viewer of the project': { project: 'viewer' },
  'operator of the project': { project: 'operator' },
  'admin of the project': { project: 'admin' },
  'viewer with more in the project': { tenant: 'viewer', project: 'admin' },
  'key of the operator': { tenant: 'operator' },
  'key of the admin': { tenant: 'admin' },
} as const satisfies Record<string, Roles>

/** Callers whose credentials count for nothing. */
const strangers = ['nobody', 'expired', 'revoked', 'key that is off', 'removed host', 'old login of a host']
const hosts = ['host', 'other host']
export const callers = [...Object.keys(users), ...strangers, ...hosts]

/** Who may: whoever asks, any user, users with a role for the tenant, users with a role in the scope, or a host about itself. */
export type Rule = 'open' | 'any user' | 'host' | `${Role} of the tenant` | `${Role} in the scope`

export interface Entry {
  readonly rule: Rule
  /** Of an answer to a caller who may. */
  readonly status: number
  /** Whether it is a page for browsers, which is no part of the API. */
  readonly isPage?: boolean
  /** Whether API keys are refused. */
  readonly refusesKeys?: boolean
  /** A request that succeeds for a caller who may, made anew after each success that may have changed something. */
  readonly request?: (scope: string) => Promise<Sent>
}

export interface Sent {
  /** For the parameter of the path. */
  readonly parameter?: string
  readonly payload?: object
  /** Of a payload that is no JSON. */
  readonly headers?: Readonly<Record<string, string>>
}

const ranks: readonly string[] = ['viewer', 'operator', 'admin']

/** The answer that a caller has to get, as `200` or `403 Forbidden`, from the rule alone. */
export function expected(
  { rule, status, refusesKeys }: Entry,
  path: string,
  caller: string,
  scope: string,
): string {
  const yes = String(status)
  const unknownProject = '404 ProjectNotFound'
  if (rule === 'open') return yes
  if (strangers.includes(caller)) return '401 Unauthenticated'
  if (hosts.includes(caller)) {
    if (rule !== 'host') return '403 Forbidden'
    return caller === 'host' || !path.includes(':') ? yes : '404 NotFound'
  }
  if (rule === 'host') return '403 Forbidden'
  const { tenant, project }: Roles = (users as Readonly<Record<string, Roles>>)[caller] ?? {}
  const isInProject = scope === 'the project'
  if (isInProject && tenant === undefined && project === undefined) return unknownProject
  if (rule === 'any user') return yes
  // What a user without a role for the tenant sees of a project where it has none.
  if (path === '/v1/projects/:uid' && rule === 'viewer of the tenant' && tenant === undefined)
    return unknownProject
  const [needed = '', , ...where] = rule.split(' ')
  const counting = [tenant, isInProject && where.join(' ') === 'the scope' ? project : undefined]
  const rank = Math.max(...counting.map((role) => ranks.indexOf(role ?? '')))
  if (rank < ranks.indexOf(needed)) return '403 Forbidden'
  return refusesKeys && caller.startsWith('key') ? '403 Forbidden' : yes
}
