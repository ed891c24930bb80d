import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'
import { force, project } from '../commands/options.ts'

export const hosts: Noun = [
  defineCommand({
    name: 'host list',
    summary: 'List the edge hosts; without --project, of every project',
    details:
      'For example --filter status.health.state=unhealthy, or --filter spec.device.archType=arm64ANDspec.device.os.family=debian.',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listHosts),
  }),
  defineCommand({
    name: 'host show',
    arguments: ['HOST'],
    completes: offered.host,
    summary: 'Show an edge host, named by its name or uid',
    options: { project },
    load: onHost(async () => (await import('./commands-manage.ts')).showHost),
  }),
  defineCommand({
    name: 'host accept',
    arguments: ['HOST'],
    completes: offered.host,
    summary: 'Of two hosts with one key, let the one in that logs in next; the other is refused from then on',
    details: 'After a disk was copied. Switch the copy off first, or give it a key of its own.',
    options: { project, yes },
    load: onHost(async () => (await import('./commands-manage.ts')).acceptHost),
  }),
  defineCommand({
    name: 'host delete',
    arguments: ['HOST'],
    completes: offered.host,
    summary: 'Remove an edge host from the platform; it learns so at its next login',
    details:
      'A host with a cluster is refused, so that the cluster is deleted before. For one that is lost or in wrong hands, --force forgets the cluster.',
    options: {
      project,
      force,
      yes,
    },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteHost),
  }),
]
