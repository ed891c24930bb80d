import { recordOptions, trailCommands } from '../../audit/commands/trail-commands.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { project } from '../commands/options.ts'

const path = '/v1/audits'

export const audits: Noun = [
  defineCommand({
    name: 'audit list',
    summary: 'Show the audit trail, newest first; the last 50 records without --limit',
    options: {
      ...recordOptions,
      by: { value: 'USER', summary: 'Only actions of this user, by e-mail or uid.' },
      project,
    },
    load: onHost(async () => (await import('./commands-list.ts')).listAudits(path)),
  }),
  ...trailCommands('audit', path),
]
