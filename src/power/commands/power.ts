import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { yes, type Options } from '../../ctl/options.ts'

const stopOptions = {
  at: {
    value: 'TIME',
    summary: 'When, within 7 days: RFC 3339, "2027-01-31 02:00" or +6h. Default: at once.',
  },
  message: {
    value: 'TEXT',
    summary: 'The reason, for events, the audit trail and users at terminals.',
  },
  force: {
    summary: 'Also while the host is busy: what it does is broken off.',
  },
  yes,
} as const satisfies Options

/** Reboot, shutdown and reset of a host. */
export const power: Noun = [
  defineCommand({
    name: 'host reboot',
    summary: 'Reboot this host, at once or at a time; for administrators',
    details:
      'Asks before. Refused while the host is busy, as with an upgrade or an upload, with all reasons. Pods get their time to end; sessions end.',
    options: stopOptions,
    load: onHost(async () => (await import('./stop-host.ts')).rebootHost),
  }),
  defineCommand({
    name: 'host shutdown',
    summary: 'Turn this host off, at once or at a time; for administrators',
    details:
      'Asks before. It has to be turned on again on site. Refused while the host is busy, as host reboot is.',
    options: stopOptions,
    load: onHost(async () => (await import('./stop-host.ts')).shutDownHost),
  }),
  defineCommand({
    name: 'host reset',
    arguments: ['[NAME]'],
    summary: 'Reset this host: its cluster, content, definitions and sessions go; for administrators',
    details:
      'Shows what goes, and asks for the name of the host; NAME gives it. It cannot be cancelled, and goes on after a restart or a power cut: edgehostctl host stops shows its phase. Accounts and the audit trail stay.',
    options: {
      keep: { value: 'content', choices: ['content'], summary: 'What stays: the content.' },
      wipe: {
        value: 'PART[,PART]',
        summary:
          'What goes too: configuration (the files in /etc/edgehostd/config.d, and edits of config.yaml), identity (keys, certificate and registration), network (what edgehostd has made and changed of links).',
      },
      'dry-run': { summary: 'Only show what would go.', isOfCommand: true },
      force: stopOptions.force,
      yes,
    },
    load: onHost(async () => (await import('./reset-host.ts')).resetHost),
  }),
  defineCommand({
    name: 'host stops',
    arguments: ['[cancel]'],
    summary:
      'Show the planned reboot or shutdown, the last one and the last reset; or cancel the planned one',
    load: onHost(async () => (await import('./stop-host.ts')).showStops),
  }),
]
