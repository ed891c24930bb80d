import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit } from '../../ctl/options.ts'
import { project } from '../commands/options.ts'

export const events: Noun = [
  defineCommand({
    name: 'event list',
    summary:
      'Show events of hosts, newest first; the last 50 without --limit, and of every project without --project',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-list.ts')).listEvents),
  }),
]
