import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { file, filter, limit } from '../../ctl/options.ts'

export const audit: Noun = [
  defineCommand({
    name: 'audit list',
    summary: 'Show the audit trail, newest first; the last 50 records without --limit',
    options: {
      limit,
      filter,
      since: {
        value: 'TIME',
        summary:
          'Only records from this time on, in a format of journalctl: 2026-01-31, "2026-01-31 08:00", yesterday, "2 hours ago", -2h.',
      },
      until: { value: 'TIME', summary: 'Only records up to this time.' },
    },
    load: onHost(async () => (await import('./trail.ts')).listAudits),
  }),
  defineCommand({
    name: 'audit verify',
    summary: 'Check that the audit trail is complete and unaltered',
    options: {
      head: {
        value: 'NUMBER:HASH',
        summary:
          'Number and hash of an earlier record, from an hourly line of the journal; the trail must contain that record.',
      },
    },
    load: onHost(async () => (await import('./trail.ts')).verifyAudits),
  }),
  defineCommand({
    name: 'audit download',
    summary: 'Save the whole audit trail as a tar archive of NDJSON files',
    options: { file },
    load: onHost(async () => (await import('./download.ts')).downloadAudits),
  }),
]
