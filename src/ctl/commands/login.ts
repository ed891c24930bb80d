import { defineCommand, type Noun } from '../command.ts'
import { onHost } from '../on-host.ts'
import { sessionEnds } from './logout.ts'

export const login: Noun = [
  defineCommand({
    name: 'login',
    arguments: ['[USER]'],
    summary: 'Log in on the host of --host with an account of its operating system',
    details:
      'Asks for the password without an echo. The tokens are kept under ~/.config/edgehostctl, readable only by their owner, and are renewed automatically. If the password has expired, a new one is asked for.',
    options: {
      'password-stdin': {
        summary: 'Read the password from standard input, up to the end of its first line.',
      },
    },
    load: onHost(async () => (await import('../login.ts')).login),
  }),
  ...sessionEnds,
]
