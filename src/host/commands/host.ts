import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

export const host: Noun = [
  defineCommand({
    name: 'host show',
    summary: 'What the machine is: hardware, network, DNS, NTP',
    load: onHost(async () => (await import('./show.ts')).showHost),
  }),
]
