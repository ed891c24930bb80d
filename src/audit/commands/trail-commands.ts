import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { file, filter, limit, type Options } from '../../ctl/options.ts'

/** Options of the list of the trail in every program. */
export const recordOptions = {
  limit,
  filter,
  since: {
    value: 'TIME',
    summary:
      'Only records from this time on, in a format of journalctl: 2026-01-31, "2026-01-31 08:00", yesterday, "2 hours ago", -2h.',
  },
  until: { value: 'TIME', summary: 'Only records up to this time.' },
} as const satisfies Options
export type RecordOption = keyof typeof recordOptions

/**
 * The commands of the trail that both programs have.
 * @param noun the first word of each
 * @param path of the list of the trail in the API
 */
export const trailCommands = (noun: string, path: string): Noun => [
  defineCommand({
    name: `${noun} verify`,
    summary: 'Check that the audit trail is complete and unaltered',
    options: {
      head: {
        value: 'NUMBER:HASH',
        summary:
          'Number and hash of an earlier record, from an hourly line of the journal; the trail must contain that record.',
      },
    },
    load: onHost(async () => (await import('./verify.ts')).verifyAudits(path)),
  }),
  defineCommand({
    name: `${noun} download`,
    summary: 'Save the whole audit trail as a tar archive of NDJSON files',
    options: { file },
    archive: ['.tar'],
    load: onHost(async () => (await import('./download.ts')).downloadAudits(path)),
  }),
]
