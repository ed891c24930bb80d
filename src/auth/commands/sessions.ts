import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost, offerField } from '../../ctl/on-host.ts'
import { filter, limit } from '../../ctl/options.ts'

export const sessions: Noun = [
  defineCommand({
    name: 'session list',
    summary: 'List your sessions; an administrator sees all sessions',
    options: { limit, filter },
    load: onHost(async () => (await import('./open-sessions.ts')).listSessions),
  }),
  defineCommand({
    name: 'session revoke',
    arguments: ['UID'],
    completes: offerField('/v1/users/sessions', 'uid'),
    summary: 'End a session',
    load: onHost(async () => (await import('./open-sessions.ts')).revokeSession),
  }),
  defineCommand({
    name: 'session revoke-all',
    summary: 'End every session of this host, also after its state was restored from a backup',
    details:
      'Needs root, but no running daemon. A restored database brings back sessions that had ended. This removes the secret in the state folder that all tokens depend on; the next start of the daemon creates a new one, and all users have to log in again. If the daemon runs, restart it.',
    load: async () => (await import('./open-sessions.ts')).revokeAll,
  }),
]
