import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import type { HostFiles } from './files.ts'
import { parseAssignments } from './operating-system.ts'

/** Where this host takes its time from: names or addresses. */
export interface Ntp {
  readonly fallbackNtpServers: readonly string[]
  readonly ntpServers: readonly string[]
}

const none: Ntp = { fallbackNtpServers: [], ntpServers: [] }
const systemdFolders = [
  '/etc/systemd',
  '/run/systemd',
  '/usr/local/lib/systemd',
  '/usr/lib/systemd',
  '/lib/systemd',
]
const timedatectlTimeoutMs = 3_000

/**
 * A running systemd-timesyncd is asked; where it does not run, the configuration of the installed time
 * service says which servers it would use.
 */
export async function readNtp(files: HostFiles, runner: CommandRunner): Promise<Ntp> {
  return (await askTimesyncd(files, runner)) ?? (await readConfiguration(files))
}

/** undefined where timesyncd does not run. The call is not made then: it would start the service by its bus name. */
async function askTimesyncd(files: HostFiles, runner: CommandRunner): Promise<Ntp | undefined> {
  const runs = (await files.names('/run/systemd')).includes('timesync')
  if (!runs || !(await files.names('/run/dbus')).includes('system_bus_socket')) return undefined
  const result = await runner
    .run('timedatectl', ['show-timesync'], { timeoutMs: timedatectlTimeoutMs })
    .catch((error: unknown) => {
      if (error instanceof CommandFailed) return undefined
      throw error
    })
  return result?.exitCode === 0 ? parseShowTimesync(result.stdout) : undefined
}

/** Parses `timedatectl show-timesync`: servers of the configuration, of DHCP (link) and of programs (runtime). */
export function parseShowTimesync(text: string): Ntp {
  const values = parseAssignments(text)
  const servers = (key: string) => words(values.get(key) ?? '')
  return {
    fallbackNtpServers: servers('FallbackNTPServers'),
    ntpServers: unique(['RuntimeNTPServers', 'SystemNTPServers', 'LinkNTPServers'].flatMap(servers)),
  }
}

async function readConfiguration(files: HostFiles): Promise<Ntp> {
  for (const folder of systemdFolders) {
    if ((await files.text(`${folder}/system/systemd-timesyncd.service`)) !== undefined) {
      return parseTimesyncdConf(await readTimesyncdConf(files))
    }
  }
  const chrony = (await files.text('/etc/chrony/chrony.conf')) ?? (await files.text('/etc/chrony.conf'))
  if (chrony !== undefined) return { ...none, ntpServers: unique(await readChronySources(files, chrony)) }
  const ntp = (await files.text('/etc/ntpsec/ntp.conf')) ?? (await files.text('/etc/ntp.conf'))
  return ntp === undefined ? none : { ...none, ntpServers: unique(parseTimeSources(ntp)) }
}

/** The main file and its drop-ins, weakest first, by the rules of timesyncd.conf(5). */
async function readTimesyncdConf(files: HostFiles): Promise<string> {
  const dropIns = new Map<string, string>()
  let main: string | undefined
  for (const folder of systemdFolders) {
    main ??= await files.text(`${folder}/timesyncd.conf`)
    const names = await files.names(`${folder}/timesyncd.conf.d`)
    for (const name of names.filter((name) => name.endsWith('.conf') && !dropIns.has(name))) {
      dropIns.set(name, (await files.text(`${folder}/timesyncd.conf.d/${name}`)) ?? '')
    }
  }
  const sorted = [...dropIns].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
  return [main ?? '', ...sorted].join('\n')
}

/** Parses `NTP=` and `FallbackNTP=`: each line adds, an empty one takes back what came before. */
export function parseTimesyncdConf(text: string): Ntp {
  const lists = { NTP: [] as string[], FallbackNTP: [] as string[] }
  for (const line of text.split('\n')) {
    const [, key, value] = /^\s*(NTP|FallbackNTP)\s*=\s*(.*)$/.exec(line) ?? []
    if (key !== 'NTP' && key !== 'FallbackNTP') continue
    if (value) lists[key].push(...words(value))
    else lists[key] = []
  }
  return { fallbackNtpServers: unique(lists.FallbackNTP), ntpServers: unique(lists.NTP) }
}

/** Sources of chrony.conf(5) with those in its `confdir` and `sourcedir` folders. */
async function readChronySources(files: HostFiles, conf: string): Promise<string[]> {
  const sources = parseTimeSources(conf)
  for (const [, directive, folders] of conf.matchAll(/^\s*(confdir|sourcedir)\s+(.+)$/gm)) {
    const ending = directive === 'confdir' ? '.conf' : '.sources'
    for (const folder of words(folders ?? '')) {
      for (const name of (await files.names(folder)).filter((name) => name.endsWith(ending))) {
        sources.push(...parseTimeSources((await files.text(`${folder}/${name}`)) ?? ''))
      }
    }
  }
  return sources
}

/** The names behind `server`, `pool` and `peer`, as chrony.conf(5) and ntp.conf(5) share them. */
export function parseTimeSources(text: string): string[] {
  return [...text.matchAll(/^\s*(?:server|pool|peer)\s+(?:-[46]\s+)?([^\s#]+)/gm)].map(
    ([, name]) => name ?? '',
  )
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}
