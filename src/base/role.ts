/** What a user may do: `admin` everything, `viewer` reads and acts on itself. */
export type Role = 'admin' | 'viewer'

/** Who manages the clusters of this host: an operator, here, or the platform it is connected to. */
export type Mode = 'airgap' | 'connected'
