import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost, offerField } from '../../ctl/on-host.ts'
import { filter, hostSettings, limit, passwordStdin } from '../../ctl/options.ts'

export const ownAccount: Noun = [
  defineCommand({
    name: 'user ssh-keys',
    summary: 'Show the SSH keys that you have set for your own account on this host, or replace them',
    details:
      'They are in a file of their own beside authorized_keys, so that other keys stay. A key outlives a stolen token: where your login is older than five minutes, your password is asked for.',
    options: {
      'ssh-key': hostSettings['ssh-key'],
      none: { summary: 'No key that was set here.', isOfCommand: true },
      'password-stdin': passwordStdin,
    },
    load: onHost(async () => (await import('./ssh-keys.ts')).ownSshKeys),
  }),
]

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
