import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit } from '../../ctl/options.ts'
import { project } from './shared-options.ts'

export const audits: Noun = [
  defineCommand({
    name: 'audits list',
    summary: 'Show the audit trail, newest first; the last 50 records without --limit',
    options: {
      limit,
      filter,
      since: {
        value: 'TIME',
        summary: 'Only records from this time on: 2026-01-31, "2026-01-31 08:00", yesterday, -2h.',
      },
      until: { value: 'TIME', summary: 'Only records up to this time.' },
      by: { value: 'USER', summary: 'Only what this user did, by e-mail or uid.' },
      project,
    },
    load: onHost(async () => (await import('./list-audits.ts')).listAudits),
  }),
]
