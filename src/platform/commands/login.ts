import { sessionEnds } from '../../ctl/commands/logout.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import type { Options } from '../../ctl/options.ts'

const passwordStdin = {
  'password-stdin': {
    summary: 'Read the password from standard input, up to the end of its first line.',
  },
} as const satisfies Options

export const login: Noun = [
  defineCommand({
    name: 'login',
    arguments: ['[EMAIL]'],
    summary: 'Log in on the platform of --host, with a password or an API key',
    details:
      'Asks for the password without an echo. The token is kept under ~/.config/edgeplatformctl, readable only by its owner; it is renewed by each command, and ends 15 minutes after the last one. An API key is kept in the same place, until logout.',
    options: {
      ...passwordStdin,
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
    options: passwordStdin,
    load: async () => (await import('./log-in.ts')).activate,
  }),
  ...sessionEnds,
]
