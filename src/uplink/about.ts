import type { Declaration } from '../room.ts'
import { PlatformOfHost } from './config.ts'

/** The platform that manages this host, in connected mode. */
export const about = {
  config: { platform: PlatformOfHost },
  tags: { platform: 'The platform that manages this host.' },
  limited: ['platform'],
} as const satisfies Declaration
