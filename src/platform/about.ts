import type { Declaration } from '../room.ts'
import { PlatformSection } from './config.ts'

/** The platform that edge hosts connect to. */
export const about = {
  config: { platform: PlatformSection },
  tags: { system: 'The platform itself: whether it answers, and its state.' },
} as const satisfies Declaration
