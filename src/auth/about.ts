import type { Declaration } from '../root/room.ts'
import { authErrors } from './codes.ts'
import { Auth } from './config.ts'

/** Accounts, PAM, sessions. */
export const about = {
  errors: authErrors,
  config: { auth: Auth },
  families: {
    edgehostd_logins_total: {
      type: 'counter',
      help: 'Checks of a password: accepted, refused, expired (right, but to be changed first), limited (too many earlier failures), busy (too many logins at once), failed (PAM or the directory did not answer).',
      labels: ['purpose', 'outcome'],
    },
    edgehostd_pam_children: {
      type: 'gauge',
      help: "PAM children: checking a password, or asleep in PAM's failure delay.",
      labels: ['state'],
    },
    edgehostd_pam_waiting_logins: { type: 'gauge', help: 'Logins that wait for a PAM child.' },
    edgehostd_sessions: { type: 'gauge', help: 'Sessions that have not ended.' },
  },
  tags: { users: 'Login, sessions and passwords of operating-system accounts.' },
  limited: ['users'],
} as const satisfies Declaration
