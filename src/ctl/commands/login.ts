import { defineCommand, type Noun } from '../command.ts'
import { onHost } from '../on-host.ts'

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
  defineCommand({
    name: 'logout',
    summary: 'End the session on the host of --host and remove its tokens',
    load: onHost(async () => (await import('../login.ts')).logout),
  }),
  defineCommand({
    name: 'forget',
    arguments: ['HOST[:PORT]'],
    summary: 'Remove the stored public key of a host, and the session there',
    details:
      'For a host that was reinstalled. The next command for that host shows its new fingerprint and asks for confirmation.',
    load: onHost(async () => (await import('../login.ts')).forget),
  }),
]
