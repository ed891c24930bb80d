import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { file } from '../../ctl/options.ts'

/** Belongs to the noun `host`, whose other commands are in the room host. */
export const hostFiles: Noun = [
  defineCommand({
    name: 'host files list',
    summary: 'List the files of this host that may be downloaded; for administrators',
    details:
      'They are in the folder diagnosis.filesDirectory of the configuration, by default /var/log/files. Programs and accounts that may write there put them into it.',
    load: onHost(async () => (await import('./files.ts')).listFiles),
  }),
  defineCommand({
    name: 'host files get',
    arguments: ['NAME'],
    summary: 'Download a file of this host; for administrators',
    details:
      'Without --file it gets its name in the working folder. The file is there when it is complete, with mode 0600.',
    options: { file },
    load: onHost(async () => (await import('./files.ts')).getFile),
  }),
]

const family = {
  value: 'VERSION',
  choices: ['4', '6'],
  summary: 'Only addresses of this version of IP. Default: the first address of the name.',
} as const
const kind = {
  value: 'KIND',
  choices: ['dns', 'tcp', 'tls', 'mtu', 'registry', 'platform'],
  summary: 'What is checked. Default: tls; without TARGET platform.',
} as const

/** Belongs to the noun `network`. */
export const networkDiagnosis: Noun = [
  defineCommand({
    name: 'network ping',
    arguments: ['TARGET'],
    summary: 'Ping an address or a name from the host; for administrators',
    details: 'Ends with 1 where nothing answers. The host needs the package iputils-ping.',
    options: { family },
    load: onHost(async () => (await import('./network.ts')).pingTarget),
  }),
  defineCommand({
    name: 'network traceroute',
    arguments: ['TARGET'],
    summary: 'Find the routers on the way from the host to an address or a name; for administrators',
    details: 'Ends with 1 where the target does not answer. The host needs the package traceroute.',
    options: { family },
    load: onHost(async () => (await import('./network.ts')).traceTarget),
  }),
  defineCommand({
    name: 'network check',
    arguments: ['[TARGET]'],
    summary: 'Check a connection from the host stage by stage, and say what to do next; for administrators',
    details:
      'TARGET is NAME:PORT, an address or a URL. For example network check registry.example:5000 --kind registry. Without TARGET the platform of the host is checked. Ends with 1 where a stage fails.',
    options: { kind, family },
    load: onHost(async () => (await import('./network.ts')).checkTarget),
  }),
]

export const logs: Noun = [
  defineCommand({
    name: 'logs',
    summary: 'Show the logs of a host, or follow them; for administrators',
    details:
      'They are those of edgehostd, kubelet, containerd, the kernel and the steps of the cluster, with secrets masked. Without --lines the last 1000 entries are shown. At most four clients follow at a time. With -o json each line is an entry.',
    options: {
      follow: { short: 'f', summary: 'Show entries as they come, until Ctrl-C.' },
      unit: {
        value: 'UNIT,...',
        summary:
          'Whose logs: edgehostd, kubelet, containerd, kernel, steps, with commas between. Default: all.',
      },
      since: {
        value: 'TIME',
        isOfCommand: true,
        summary: 'A time, as 2026-01-31T08:00:00Z, or a span before now, as 15m, 2h or 7d.',
      },
      priority: {
        value: 'NAME',
        choices: ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug'],
        summary: 'Only entries that are at least this urgent.',
      },
      lines: { value: 'N', summary: 'The largest number of entries, the last ones; up to 10000.' },
    },
    load: onHost(async () => (await import('./logs.ts')).showLogs),
  }),
]
