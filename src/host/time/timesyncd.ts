import type { CommandRunner } from '../../system/runner.ts'
import type { HostFiles } from '../files.ts'
import { askProperties, propertyOf, type Properties } from '../properties.ts'
import { figuresOf, unique, words, type Ntp, type NtpReading } from './time-source.ts'
import { parseTimeSpan } from './time-span.ts'

const systemdFolders = [
  '/etc/systemd',
  '/run/systemd',
  '/usr/local/lib/systemd',
  '/usr/lib/systemd',
  '/lib/systemd',
]

// org.freedesktop.timesync1 has no man page; systemd's timesyncd-bus.c lists the properties.
const manager = {
  service: 'org.freedesktop.timesync1',
  path: '/org/freedesktop/timesync1',
  interface: 'org.freedesktop.timesync1.Manager',
}
// Microseconds that stand for infinity: the highest number of 64 bits, which JSON.parse() rounds up.
const infinity = 2 ** 64

/**
 * Asks the running systemd-timesyncd. Values that it does not report come from its files, and all values where it does not
 * answer.
 */
export async function readTimesyncd(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  // timesyncd runs without the system bus too.
  const hasBus = (await files.names('/run/dbus')).includes('system_bus_socket')
  // The files are read while timesyncd answers.
  const answer = hasBus ? askProperties(runner, manager) : undefined
  const ntp = parseTimesyncdConf(...(await readTimesyncdConf(files)))
  const service = await answer
  if (service === undefined) return { ntp, problems: [] }
  if ('problem' in service) return { ntp, problems: [service.problem] }
  return { ntp: { ...ntp, ...ntpOfProperties(service.properties) }, problems: [] }
}

/** Reads the servers in the configuration files of systemd-timesyncd; undefined where it is not installed. */
export async function readTimesyncdConfiguration(files: HostFiles): Promise<Ntp | undefined> {
  for (const folder of systemdFolders) {
    if ((await files.text(`${folder}/system/systemd-timesyncd.service`)) !== undefined) {
      return parseTimesyncdConf(...(await readTimesyncdConf(files)))
    }
  }
  return undefined
}

/**
 * The servers and poll figures in timesyncd's properties. Servers are of the configuration (system), of DHCP (link) and of
 * programs (runtime, since systemd 251); times are microseconds.
 */
export function ntpOfProperties(properties: Properties): Ntp {
  const servers = (name: string) => (propertyOf(properties, name, 'as') ?? []) as readonly string[]
  const seconds = (name: string) => {
    const microseconds = propertyOf(properties, name, 't') as number | undefined
    return microseconds !== undefined && microseconds < infinity ? microseconds / 1_000_000 : undefined
  }
  return {
    ...figuresOf({
      pollIntervalMaxSec: seconds('PollIntervalMaxUSec'),
      pollIntervalMinSec: seconds('PollIntervalMinUSec'),
      rootDistanceMaxSec: seconds('RootDistanceMaxUSec'),
    }),
    fallbackNtpServers: unique(servers('FallbackNTPServers')),
    ntpServers: unique(['RuntimeNTPServers', 'SystemNTPServers', 'LinkNTPServers'].flatMap(servers)),
  }
}

/** The texts of the main file and of its drop-ins in the order in which timesyncd.conf(5) reads them. */
async function readTimesyncdConf(files: HostFiles): Promise<readonly string[]> {
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
  return [main ?? '', ...sorted]
}

/**
 * Parses the files of timesyncd.conf(5), in their order. Lists: each line adds to the list, and an empty value clears it. Time spans: the
 * last valid one wins.
 */
export function parseTimesyncdConf(...texts: readonly string[]): Ntp {
  const lists = new Map<string, string[]>()
  const spans = new Map<string, number>()
  for (const [key, value] of texts.flatMap((text) => assignmentsOf(text, 'Time'))) {
    const span = parseTimeSpan(value)
    if (key === 'NTP' || key === 'FallbackNTP') {
      lists.set(key, value ? [...(lists.get(key) ?? []), ...words(value)] : [])
    } else if (span !== undefined) spans.set(key, span)
  }
  return {
    ...figuresOf({
      connectionRetrySec: spans.get('ConnectionRetrySec'),
      pollIntervalMaxSec: spans.get('PollIntervalMaxSec'),
      pollIntervalMinSec: spans.get('PollIntervalMinSec'),
      rootDistanceMaxSec: spans.get('RootDistanceMaxSec'),
      saveIntervalSec: spans.get('SaveIntervalSec'),
    }),
    fallbackNtpServers: unique(lists.get('FallbackNTP') ?? []),
    ntpServers: unique(lists.get('NTP') ?? []),
  }
}

/**
 * The assignments of a section as systemd reads them (config_parse of shared/conf-parser.c): a line that ends with a backslash that no other
 * one escapes goes on in the next line that is no comment; a comment itself never goes on. What is in no section, or in another, does not count.
 */
function assignmentsOf(text: string, section: string): (readonly [key: string, value: string])[] {
  const found: (readonly [string, string])[] = []
  let isInside = false
  let begun = ''
  const read = (line: string) => {
    const [, name] = /^\[(.*)\]\s*$/.exec(line) ?? []
    if (name !== undefined) isInside = name === section
    const [, key = '', value = ''] = /^([A-Za-z]+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (isInside && key !== '') found.push([key, value])
  }
  for (const line of text.replace(/^\ufeff/, '').split(/\r\n|\n\r|[\r\n\0]/)) {
    const rest = line.trimStart()
    if (/^[#;]/.test(rest)) continue
    const whole = begun + rest
    const goesOn = /(?<!\\)(?:\\\\)*\\$/.test(whole)
    begun = goesOn ? `${whole.slice(0, -1)} ` : ''
    if (!goesOn) read(whole)
  }
  read(begun)
  return found
}
