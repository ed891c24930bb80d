import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

export const status: Noun = [
  defineCommand({
    name: 'status',
    summary: 'Show the state of the platform, its addresses and the fingerprint of its certificate',
    load: onHost(async () => (await import('./show-status.ts')).showStatus),
  }),
]
