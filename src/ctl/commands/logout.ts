import { program } from '../../base/program.ts'
import { defineCommand, type Noun } from '../command.ts'
import { onHost } from '../on-host.ts'

/** Commands that end what a login began. */
export const sessionEnds: Noun = [
  defineCommand({
    name: 'logout',
    summary: `End the session on the ${program.noun} of --host and remove its tokens`,
    load: onHost(async () => (await import('../logout.ts')).logout),
  }),
  defineCommand({
    name: 'forget',
    arguments: ['HOST[:PORT]'],
    summary: `Remove the stored public key of a ${program.noun}, and the session there`,
    details: `For a ${program.noun} that was reinstalled. The next command for it shows its new fingerprint and asks for confirmation.`,
    load: onHost(async () => (await import('../logout.ts')).forget),
  }),
]
