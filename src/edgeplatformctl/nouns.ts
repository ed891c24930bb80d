import { sessionEnds, api, ofProgram } from '../ctl/commands.ts'
import { defineCommand, type Noun, sumCommands } from '../ctl/command.ts'
import { onHost } from '../ctl/on-host.ts'
import { passwordStdin } from '../ctl/options.ts'
import { apiKeys } from '../platform/keys/commands.ts'
import { audits } from '../platform/audits/commands.ts'
import { backup, secret, status } from '../platform/system/commands.ts'
import { clouds } from '../platform/clouds/commands.ts'
import { clusters } from '../platform/clusters/commands.ts'
import { events } from '../platform/events/commands.ts'
import { hosts } from '../platform/hosts/commands.ts'
import { packs } from '../platform/packs/commands.ts'
import { profiles } from '../platform/profiles/commands.ts'
import { projects } from '../platform/projects/commands.ts'
import { tokens } from '../platform/tokens/commands.ts'
import { userSessions } from './user-sessions.ts'
import { users } from '../platform/users/commands.ts'

const login: Noun = [
  defineCommand({
    name: 'login',
    arguments: ['[EMAIL]'],
    summary: 'Log in on the platform of --host, with a password or an API key',
    details:
      'Asks for the password without an echo. The token is kept under ~/.config/edgeplatformctl, readable only by its owner; it is renewed by each command, and ends 15 minutes after the last one. An API key is kept in the same place, until logout.',
    options: {
      'password-stdin': passwordStdin,
      'api-key-file': {
        value: 'FILE',
        summary: 'Use the API key in this file instead of a password; - is standard input.',
        completes: 'file',
      },
    },
    load: onHost(async () => (await import('./log-in.ts')).login),
  }),
  defineCommand({
    name: 'activate',
    arguments: ['LINK'],
    summary: 'Set your password by the link that an administrator has handed out',
    details:
      'Asks for the new password twice, without an echo. The platform is the one that the link names, unless --host or --socket names it.',
    options: { 'password-stdin': passwordStdin },
    load: async () => (await import('./log-in.ts')).activate,
  }),
  ...sessionEnds,
]

/** All commands of edgeplatformctl, in the order of the help. A new noun is one line here. */
export const commandTable = sumCommands(
  [
    status,
    login,
    users,
    projects,
    apiKeys,
    tokens,
    hosts,
    packs,
    profiles,
    clusters,
    clouds,
    events,
    audits,
    backup,
    secret,
    api,
    ofProgram,
  ],
  userSessions,
)
