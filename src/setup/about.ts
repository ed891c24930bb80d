import type { Declaration } from '../root/room.ts'
import { setupErrors } from './codes.ts'

/** Name and time servers of a host without a cluster. */
export const about = {
  errors: setupErrors,
  support: [{ name: 'host-time.json', path: '/v1/edge-mgmt/edgehosts/current/time' }],
} as const satisfies Declaration
