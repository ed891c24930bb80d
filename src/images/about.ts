import type { Declaration } from '../root/room.ts'

/** All images of this host. */
export const about = {
  support: [{ name: 'content-images.json', path: '/v1/edge-mgmt/content/images' }],
} as const satisfies Declaration
