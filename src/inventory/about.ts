import type { Declaration } from '../root/room.ts'

/** What this machine is made of. */
export const about = {
  support: [
    {
      name: 'inventory.json',
      path: '/v1/edge-mgmt/edgehosts/current/inventory',
      // Where there is no reading yet, the reply waits for the first.
      timeoutMs: 330_000,
      masks: ['serial', 'assetTag'],
    },
  ],
} as const satisfies Declaration
