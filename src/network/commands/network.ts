import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

export const network: Noun = [
  defineCommand({
    name: 'network list',
    summary: 'List the links of this host: interfaces, bonds, VLANs, bridges, with address, state and owner',
    details:
      'CHANGE says whether a link can be configured here; `network show NAME` says why not. Interfaces of pods, containers and virtual machines are left out.',
    load: onHost(async () => (await import('./show.ts')).listLinks),
  }),
  defineCommand({
    name: 'network show',
    arguments: ['NAME'],
    summary: 'Show a link: what runs, what is configured, in which files, and by whom',
    load: onHost(async () => (await import('./show.ts')).showLink),
  }),
]
