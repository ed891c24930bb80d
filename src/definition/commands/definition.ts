import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** Commands about the definitions on a host. Those that work on files are in the room `authoring`. */
export const definitionsOnHost: Noun = [
  defineCommand({
    name: 'definition upload',
    arguments: ['FILE'],
    summary: 'Send a definition to a host, and say where it is there',
    details:
      'FILE is a .tgz or .tar.zst, as definition build makes it. It takes the place of the definition in the slot overridden, or, on a host with a cluster, of the one in the slot update; nothing is created or changed with it yet.',
    options: {
      signature: {
        value: 'FILE',
        summary: 'Detached signature of FILE, for hosts that have a signing key.',
        isOfCommand: true,
        completes: 'file',
      },
    },
    completes: 'file',
    load: onHost(async () => (await import('./upload.ts')).uploadToHost),
  }),
]
