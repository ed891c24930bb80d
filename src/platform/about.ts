import { passwordErrors } from '../credentials/codes.ts'
import type { Declaration } from '../room.ts'
import { PlatformSection } from './config.ts'

/** The platform that edge hosts connect to. */
export const about = {
  errors: { ...passwordErrors },
  config: { platform: PlatformSection },
  tags: { system: 'The platform itself: whether it answers, and its state.' },
} as const satisfies Declaration
