import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

export const host: Noun = [
  defineCommand({
    name: 'host show',
    summary: 'Show the machine: hardware, network, DNS, NTP',
    load: onHost(async () => (await import('./show.ts')).showHost),
  }),
]
