import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

export const host: Noun = [
  defineCommand({
    name: 'host show',
    summary: 'Show the machine: hardware, network, DNS, NTP',
    load: onHost(async () => (await import('./show.ts')).showHost),
  }),
  defineCommand({
    name: 'host usage',
    summary: 'Show what the machine is doing: uptime, load, memory, clock, space, links',
    load: onHost(async () => (await import('./usage.ts')).hostUsage),
  }),
]
