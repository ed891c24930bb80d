/**
 * Rights of a user: `viewer` may read and may change its own account and session, `operator` may also do the daily work, `admin` may do
 * everything. Accounts of a host are never operators, see `HostRole`.
 */
export type Role = 'admin' | 'operator' | 'viewer'

/** The roles that an account of a host may have. */
export type HostRole = Exclude<Role, 'operator'>

const ranks: Readonly<Record<Role, number>> = { viewer: 1, operator: 2, admin: 3 }

/** Whether a role allows all that the needed one allows. */
export const isAtLeast = (role: Role, needed: Role): boolean => ranks[role] >= ranks[needed]

/** Who manages the clusters of this host: a local operator, or the platform that the host is connected to. */
export type Mode = 'airgap' | 'connected'
