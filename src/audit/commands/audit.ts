import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { recordOptions, trailCommands } from './trail-commands.ts'

const path = '/v1/edge-mgmt/edgehosts/current/audits'

export const audit: Noun = [
  defineCommand({
    name: 'audit list',
    summary: 'Show the audit trail, newest first; the last 50 records without --limit',
    options: recordOptions,
    load: onHost(async () => (await import('./show-records.ts')).listAudits(path)),
  }),
  ...trailCommands('audit', path),
]
