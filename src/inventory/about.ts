import type { Declaration } from '../root/room.ts'

/** Hardware inventory of this machine. */
export const about = {
  support: [
    {
      name: 'inventory.json',
      path: '/v1/edge-mgmt/edgehosts/current/inventory',
      // Without a reading yet, the reply waits for the first.
      timeoutMs: 330_000,
      masks: ['serial', 'assetTag'],
    },
  ],
} as const satisfies Declaration
