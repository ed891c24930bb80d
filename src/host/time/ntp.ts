import { posix } from 'node:path'
import type { CommandRunner } from '../../system/runner.ts'
import { ask, type Answer } from '../ask.ts'
import { type HostFiles, passRefused } from '../files.ts'
import { parseAssignments } from '../machine.ts'
import { askProperties, propertyOf, type Properties, isServiceRunning } from '../services.ts'

const second = 1_000_000
const units: ReadonlyMap<string, number> = new Map([
  ...spelled(1, 'usec us µs μs'),
  ...spelled(1_000, 'msec ms'),
  ...spelled(second, 'seconds second sec s'),
  ...spelled(60 * second, 'minutes minute min m'),
  ...spelled(3_600 * second, 'hours hour hr h'),
  ...spelled(86_400 * second, 'days day d'),
  ...spelled(604_800 * second, 'weeks week w'),
  // A twelfth of the year: 30.4375 days, which the man page rounds to 30.44.
  ...spelled(2_629_800 * second, 'months month M'),
  ...spelled(31_557_600 * second, 'years year y'),
])

/**
 * Parses a time span of systemd.time(7), for example `34min 8s` or `2048`.
 * @returns seconds; undefined for a text that is no time span, and for `infinity`
 */
export function parseTimeSpan(text: string): number | undefined {
  let rest = text.trim().replace(/^\+/, '')
  if (rest === '') return undefined
  // Added up in whole microseconds, as systemd does: fractions of seconds would not add up to a round sum.
  let microseconds = 0
  while (rest !== '') {
    const [whole, amount = '', unit = ''] =
      /^(\d+(?:\.\d+)?|\.\d+)\s*([a-z\u00b5\u03bc]*)\s*/i.exec(rest) ?? []
    const factor = unit === '' ? second : units.get(unit)
    if (whole === undefined || factor === undefined) return undefined
    microseconds += Math.round(Number(amount) * factor)
    rest = rest.slice(whole.length)
  }
  return microseconds / second
}

function spelled(microseconds: number, spellings: string): [string, number][] {
  return spellings.split(' ').map((spelling) => [spelling, microseconds])
}

/** The time servers of this host, by name or address, and its poll figures. */
export interface Ntp extends PollFigures {
  readonly fallbackNtpServers: readonly string[]
  readonly ntpServers: readonly string[]
}

/** Seconds as text, as timesyncd.conf(5) accepts them without a unit. A figure that the host does not state is absent. */
interface PollFigures {
  readonly connectionRetrySec?: string
  readonly pollIntervalMaxSec?: string
  readonly pollIntervalMinSec?: string
  readonly rootDistanceMaxSec?: string
  readonly saveIntervalSec?: string
}

/** The time servers of this host, and why the service could not be asked. */
interface NtpReading {
  readonly ntp: Ntp
  readonly problems: readonly string[]
  /** Whether the service keeps the clock by a source now; only chronyd is asked. */
  readonly isSynchronized?: boolean
}

/** A server, pool or peer as a configuration file names it. */
interface TimeSource {
  readonly name: string
  /** Power of two, in seconds. */
  readonly minpoll?: number
  readonly maxpoll?: number
}

/** Parses the lines that chrony.conf(5) and ntp.conf(5) have in common. Reference clocks of ntpd (127.127.x.y) are left out. */
function parseTimeSources(text: string): TimeSource[] {
  return [...text.matchAll(/^[ \t]*(?:server|pool|peer)[ \t]+(?:-[46][ \t]+)?([^\s#]+)([^#\n]*)/gim)]
    .map(([, name = '', options = '']) => ({
      name,
      ...poll('minpoll', options),
      ...poll('maxpoll', options),
    }))
    .filter(({ name }) => !name.startsWith('127.127.'))
}

/** Sums up the sources of a configuration. A poll figure is stated only where all sources state the same. */
function ntpOf(sources: readonly TimeSource[]): Ntp {
  return {
    ...figuresOf({
      pollIntervalMaxSec: agreed(sources.map(({ maxpoll }) => maxpoll)),
      pollIntervalMinSec: agreed(sources.map(({ minpoll }) => minpoll)),
    }),
    fallbackNtpServers: [],
    ntpServers: unique(sources.map(({ name }) => name)),
  }
}

/** The known figures, in seconds, as text. */
function figuresOf(seconds: { readonly [Key in keyof PollFigures]: number | undefined }): PollFigures {
  const known = Object.entries(seconds).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known.map(([key, value]) => [key, String(value)]))
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}

function poll(key: 'minpoll' | 'maxpoll', options: string): Pick<TimeSource, typeof key> {
  const [, value] = new RegExp(`(?:^|\\s)${key}\\s+(-?\\d+)(?:\\s|$)`, 'i').exec(options) ?? []
  return value === undefined ? {} : { [key]: Number(value) }
}

function agreed(powers: readonly (number | undefined)[]): number | undefined {
  const [power, ...others] = new Set(powers)
  return power === undefined || others.length > 0 ? undefined : 2 ** power
}

// Debian's path, and the other distributions'.
const configurationFiles = ['/etc/chrony/chrony.conf', '/etc/chrony.conf']
const timeoutMs = 3_000
// Stops at a file that includes itself.
const maxDepth = 5

/** Asks a running chronyd, which also knows sources that no file names; only its files have the poll figures. */
async function readChrony(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  const configured = (await readChronyConfiguration(files)) ?? ntpOf([])
  const answer = await askForSources(runner)
  if ('problem' in answer) return { ntp: configured, problems: [answer.problem] }
  return {
    ntp: { ...configured, ntpServers: parseChronySources(answer.stdout) },
    problems: [],
    isSynchronized: hasChosenSource(answer.stdout),
  }
}

/**
 * `-N`: names as they were configured (since chrony 4.0; older versions show addresses, `-n`). `-a`: also sources whose
 * name has no address yet, which are all sources on a host that was never online. In the daemon's sandbox chronyc has no
 * access to chronyd's socket and asks port 323 of this host instead, which allows this query (chronyc(1)).
 */
async function askForSources(runner: CommandRunner): Promise<Answer> {
  const sources = (naming: string) => ask(runner, 'chronyc', [naming, '-c', 'sources', '-a'], timeoutMs)
  const answer = await sources('-N')
  return 'problem' in answer && / option\b/.test(answer.problem) ? sources('-n') : answer
}

/**
 * Parses `chronyc -c sources`: mode (`^` server, `=` peer, `#` reference clock), state, name, and figures.
 * All members of a pool have the name of the pool. With `-n`, a source without an address is shown as `ID#…`.
 */
export function parseChronySources(text: string): string[] {
  const names = text
    .split('\n')
    .map((line) => line.split(','))
    .map(([mode, , name = '']) => (mode === '^' || mode === '=' ? name : ''))
  return unique(names.filter((name) => name !== '' && !name.startsWith('ID#')))
}

/** Whether `chronyc -c sources` shows a source that the clock is kept by, a reference clock too: state `*`. */
export function hasChosenSource(text: string): boolean {
  return text.split('\n').some((line) => line.split(',')[1] === '*')
}

/** Reads the sources in chronyd's configuration files; undefined where chronyd is not installed. */
async function readChronyConfiguration(files: HostFiles): Promise<Ntp | undefined> {
  for (const path of configurationFiles) {
    const text = await files.text(path)
    if (text !== undefined) return ntpOf(await sourcesOf(files, text))
  }
  return undefined
}

/** The sources of a file of chrony.conf(5), then of the files that it includes. */
async function sourcesOf(files: HostFiles, text: string, depth = 0): Promise<TimeSource[]> {
  const sources = parseTimeSources(text)
  if (depth === maxDepth) return sources
  for (const [, directive, value] of text.matchAll(/^[ \t]*(include|confdir|sourcedir)[ \t]+(.+)$/gim)) {
    for (const path of await filesOf(files, directive?.toLowerCase() ?? '', words(value ?? ''))) {
      sources.push(...(await sourcesOf(files, (await files.text(path)) ?? '', depth + 1)))
    }
  }
  return sources
}

async function filesOf(files: HostFiles, directive: string, places: readonly string[]): Promise<string[]> {
  const paths = new Map<string, string>()
  const patterns =
    directive === 'include'
      ? places.slice(0, 1)
      : places.map((folder) => `${folder}/*${directive === 'confdir' ? '.conf' : '.sources'}`)
  for (const pattern of patterns) {
    const { dir, base } = posix.parse(pattern)
    for (const name of await files.names(dir)) {
      // Of files with the same name, the one in the first folder wins.
      if (posix.matchesGlob(name, base) && !paths.has(name)) paths.set(name, `${dir}/${name}`)
    }
  }
  return [...paths].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path)
}

/** Reads the sources in the configuration files of ntpd (NTPsec or the older one); undefined where it is not installed. */
async function readNtpdConfiguration(files: HostFiles): Promise<Ntp | undefined> {
  for (const path of [...(await filesOfDhcp(files)), '/etc/ntpsec/ntp.conf', '/etc/ntp.conf']) {
    const text = await files.text(path)
    if (text === undefined) continue
    // ntpd also reads the folder ntp.d beside the file, as if the file included it at its end (ntpd(8)).
    return ntpOf(await sourcesOfNtpd(files, path, `${text}\nincludefile ntp.d\n`))
  }
  return undefined
}

/** Debian's unit prefers a copy that its DHCP hook has written, with the servers of the lease. */
async function filesOfDhcp(files: HostFiles): Promise<string[]> {
  const defaults = parseAssignments((await files.text('/etc/default/ntpsec')) ?? '')
  return defaults.get('IGNORE_DHCP') === 'yes' ? [] : ['/run/ntpsec/ntp.conf.dhcp']
}

/** The sources of a file of ntp.conf(5), then of the files and folders that it includes. */
async function sourcesOfNtpd(files: HostFiles, path: string, text: string, depth = 0): Promise<TimeSource[]> {
  const sources = parseTimeSources(text)
  if (depth === maxDepth) return sources
  for (const [, place = ''] of text.matchAll(/^[ \t]*includefile[ \t]+"?([^\s"#]+)/gm)) {
    const included = posix.resolve(posix.dirname(path), place)
    // Including a folder includes its files that end in .conf.
    const names = (await files.names(included)).filter((name) => name.endsWith('.conf'))
    for (const file of names.length > 0 ? names.map((name) => `${included}/${name}`) : [included]) {
      const text = await files.text(file)
      if (text !== undefined) sources.push(...(await sourcesOfNtpd(files, file, text, depth + 1)))
    }
  }
  return sources
}

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
async function readTimesyncd(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
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
async function readTimesyncdConfiguration(files: HostFiles): Promise<Ntp | undefined> {
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
 * one escapes goes on in the next line that is no comment; a comment itself never goes on. Lines in no section, or in another, do not count.
 */
function assignmentsOf(text: string, section: string): (readonly [key: string, value: string])[] {
  const found: (readonly [string, string])[] = []
  let isInside = false
  let continued = ''
  const read = (line: string) => {
    const [, name] = /^\[(.*)\]\s*$/.exec(line) ?? []
    if (name !== undefined) isInside = name === section
    const [, key = '', value = ''] = /^([A-Za-z]+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (isInside && key !== '') found.push([key, value])
  }
  for (const line of text.replace(/^\ufeff/, '').split(/\r\n|\n\r|[\r\n\0]/)) {
    const rest = line.trimStart()
    if (/^[#;]/.test(rest)) continue
    const whole = continued + rest
    const goesOn = /(?<!\\)(?:\\\\)*\\$/.test(whole)
    continued = goesOn ? `${whole.slice(0, -1)} ` : ''
    if (!goesOn) read(whole)
  }
  read(continued)
  return found
}

interface TimeService {
  /** Names of its unit in the distributions. */
  readonly units: readonly string[]
  /** Asks the running service. Where this is missing, only the configuration is read. */
  readonly ask?: (files: HostFiles, runner: CommandRunner) => Promise<NtpReading>
  /** undefined where the service is not installed. */
  readonly configuration: (files: HostFiles) => Promise<Ntp | undefined>
}

const services: readonly TimeService[] = [
  {
    units: ['systemd-timesyncd.service'],
    ask: readTimesyncd,
    configuration: readTimesyncdConfiguration,
  },
  {
    units: ['chrony.service', 'chronyd.service'],
    ask: readChrony,
    configuration: readChronyConfiguration,
  },
  // Not asked: ntpq shows addresses and truncated names, never the configured names.
  { units: ['ntpsec.service', 'ntp.service', 'ntpd.service'], configuration: readNtpdConfiguration },
]

/**
 * Reads the time servers of this host: those that the running time service uses, or, where none runs, those in the
 * configuration of the installed one.
 * @returns in `problems` why a service did not answer, where the configuration files are then used, and which of these are no files
 */
export async function readNtp(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  const read = passRefused(files)
  const { ntp, problems } = await readServers(read.files, runner)
  return { ntp, problems: [...problems, ...read.problems] }
}

async function readServers(files: HostFiles, runner: CommandRunner): Promise<NtpReading> {
  const running = await findRunning(files)
  if (running?.ask) return running.ask(files, runner)
  for (const { configuration } of running ? [running] : services) {
    const ntp = await configuration(files)
    if (ntp !== undefined) return { ntp, problems: [] }
  }
  return { ntp: ntpOf([]), problems: [] }
}

async function findRunning(files: HostFiles): Promise<TimeService | undefined> {
  for (const service of services) {
    for (const unit of service.units) {
      if (await isServiceRunning(files, unit)) return service
    }
  }
  return undefined
}
