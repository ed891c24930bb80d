import { passwordErrors } from '../credentials/codes.ts'
import type { Declaration } from '../room.ts'
import { platformErrors } from './codes.ts'
import { PlatformSection } from './config.ts'

/** The platform that edge hosts connect to. */
export const about = {
  errors: { ...passwordErrors, ...platformErrors },
  config: { platform: PlatformSection },
  tags: {
    auth: 'Sign-in of users, and their tokens and passwords.',
    users: 'Users of the platform and their roles.',
    apiKeys: 'API keys of users.',
    edgehosts: 'Edge hosts, their registration tokens, and their registration.',
    events: 'Events of the hosts.',
    projects: 'Projects of the tenant, and roles of users in them.',
    system: 'The platform itself: whether it answers, and its state.',
  },
} as const satisfies Declaration
