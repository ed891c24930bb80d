/** What a user may do: `admin` may do everything, `viewer` may read and may change its own account and session. */
export type Role = 'admin' | 'viewer'

/** Who manages the clusters of this host: a local operator, or the platform that the host is connected to. */
export type Mode = 'airgap' | 'connected'
