import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** Name and time servers of a host. */
export const setup: Noun = [
  defineCommand({
    name: 'host hostname',
    arguments: ['[NAME]'],
    summary: 'Show the name of this host, or give it another one; for administrators',
    details:
      'For a host without a cluster, whose node keeps its name. /etc/hostname and /etc/hosts have it then, and the certificate follows.',
    load: onHost(async () => (await import('./perform.ts')).hostName),
  }),
  defineCommand({
    name: 'host time',
    summary: 'Show the time servers that were set for this host, or set them; for administrators',
    details:
      'For a host without a cluster; with one: edgehostctl cluster settings --ntp. systemd-timesyncd uses them instead of others, chrony before others.',
    options: {
      server: {
        value: 'SERVER...',
        summary: 'Names or addresses of the time servers; none takes those away that were set so.',
        isList: true,
      },
    },
    load: onHost(async () => (await import('./perform.ts')).hostTime),
  }),
]
