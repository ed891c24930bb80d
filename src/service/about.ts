import type { Declaration } from '../root/room.ts'

/** Declares the room of the daemon itself. */
export const about = {
  tags: { service: 'The daemon itself.' },
  support: [{ name: 'status.json', path: '/v1/edge-mgmt/edgehosts/current/status' }],
} as const satisfies Declaration
