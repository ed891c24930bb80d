import { archiveErrors } from '../archive/codes.ts'
import { passwordErrors } from '../credentials/codes.ts'
import { importErrors } from '../definition/codes.ts'
import type { Declaration } from '../root/room.ts'
import { uploadErrors } from '../upload/codes.ts'
import { platformErrors } from './codes.ts'
import { CloudsSection, PlatformSection } from './config.ts'

/** The platform that edge hosts connect to. */
export const about = {
  errors: {
    ...passwordErrors,
    ...platformErrors,
    ...importErrors,
    ...archiveErrors,
    // Of the errors of uploads, since nothing is signed here.
    TooManyUploads: uploadErrors.TooManyUploads,
  },
  config: { platform: PlatformSection, clouds: CloudsSection },
  checkReferencedFiles: async (check) => (await import('./check-settings.ts')).checkSettings(check),
  tags: {
    auth: 'Sign-in of users, and their tokens and passwords.',
    users: 'Users of the platform and their roles.',
    apiKeys: 'API keys of users.',
    edgehosts: 'Edge hosts, their registration tokens, and their registration.',
    events: 'Events of the hosts.',
    packs: 'Packs, of which cluster profiles are made.',
    clusterprofiles: 'Cluster profiles: what clusters run.',
    spectroclusters: 'Clusters on edge hosts: their desired state, and the reports of their hosts.',
    clouds: 'Accounts of a cloud, pools of its servers, and these as machines.',
    projects: 'Projects of the tenant, and roles of users in them.',
    system: 'The platform itself: whether it answers, and its state.',
  },
} as const satisfies Declaration
