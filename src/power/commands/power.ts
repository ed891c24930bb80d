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
    summary: 'Also while the host is busy: what it does is broken off, and goes on after the boot.',
  },
  yes,
} as const satisfies Options

/** Reboot and shutdown of a host. */
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
    name: 'host stops',
    arguments: ['[cancel]'],
    summary: 'Show the planned reboot or shutdown and the last one; or cancel the planned one',
    load: onHost(async () => (await import('./stop-host.ts')).showStops),
  }),
]
