import type { Declaration } from '../root/room.ts'
import { PlatformOfHost } from './config.ts'

/** The platform that manages this host, in connected mode. */
export const about = {
  config: { platform: PlatformOfHost },
  tags: { platform: 'The platform that manages this host.' },
  limited: ['platform'],
  checkReferencedFiles: async (check) => (await import('./check-settings.ts')).checkSettings(check),
  families: {
    edgehostd_platform_silent_seconds: {
      type: 'gauge',
      help: 'Since when the platform does not answer this host; 0 while it does, and in airgap mode.',
    },
    edgehostd_platform_waiting_events: {
      type: 'gauge',
      help: 'Events that the platform does not have yet.',
    },
  },
  attention: {
    PlatformUnreachable: 'This host is not connected to its platform.',
    OrderNotApplied: 'The cluster that the platform desires cannot be applied.',
  },
  support: [{ name: 'platform.json', path: '/v1/edge-mgmt/platform' }],
} as const satisfies Declaration
