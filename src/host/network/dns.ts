import { isIP } from 'node:net'
import { printable } from '../../base/printable.ts'
import { passRefused, type HostFiles } from '../files.ts'
import { isServiceRunning, askProperties, propertyOf } from '../services.ts'
import { addressOfHex } from '../../base/address.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { parseAssignments } from '../machine.ts'

/** Name resolution of this host. */
export interface Dns {
  readonly nameservers: readonly string[]
  /** As resolv.conf(5) spells them, for example `ndots:5`. */
  readonly options: readonly string[]
  readonly searchDomains: readonly string[]
}

interface DnsReading {
  readonly dns: Dns
  readonly problems: readonly string[]
}

// <resolv.h>: the C library's resolver uses at most this many servers.
const MAXNS = 3
// The addresses on which systemd-resolved itself listens (systemd-resolved.service(8)), not of its servers.
const stubs = new Set(['127.0.0.53', '127.0.0.54'])
export const resolvedService = 'systemd-resolved.service'

/**
 * Reads the name resolution of the host. Where systemd-resolved runs, servers and search domains come from its files: the
 * host's before the links', and fallback servers only where there are no others (systemd-resolved.service(8)).
 * Servers on a port other than 53, and servers of links for single domains only, are not among them. The options, and
 * everything where resolved does not run, come from /etc/resolv.conf, which programs read. resolved leaves its files when
 * it stops; they then count only where /etc/resolv.conf names nothing but its stub.
 */
export async function readDns(all: HostFiles): Promise<DnsReading> {
  const { files, problems } = passRefused(all)
  const path = '/etc/resolv.conf'
  const { invalid, ...parsed } = parseResolvConf((await files.text(path)) ?? '')
  // Only addresses count towards the limit, res_init.c of glibc.
  const configured = { ...parsed, nameservers: parsed.nameservers.slice(0, MAXNS) }
  const [first] = invalid
  const others = invalid.length > 1 ? `, and ${invalid.length - 1} more` : ''
  return {
    dns: await readBehind(files, configured),
    problems: [
      ...problems,
      ...(first === undefined
        ? []
        : [
            `${path}: "${printable(first)}" is not an address, so no resolver uses it${others}; correct the nameserver line`,
          ]),
    ],
  }
}

/** The servers and domains that are used in the end, where /etc/resolv.conf leads to systemd-resolved. */
async function readBehind(files: HostFiles, configured: Dns): Promise<Dns> {
  if (!isOnlyStub(configured) && !(await isServiceRunning(files, resolvedService))) return configured
  const known = await files.text('/run/systemd/resolve/resolv.conf')
  if (known === undefined) return configured
  const { nameservers, searchDomains } = parseResolvConf(known)
  return { ...configured, nameservers, searchDomains }
}

function isOnlyStub({ nameservers }: Dns): boolean {
  return nameservers.length > 0 && nameservers.every((server) => stubs.has(server))
}

/**
 * Parses resolv.conf(5): the last `search` or `domain` wins; servers and options of all lines are collected.
 * @returns also, in `invalid`, the servers that are not addresses
 */
export function parseResolvConf(text: string): Dns & { readonly invalid: readonly string[] } {
  const nameservers: string[] = []
  const invalid: string[] = []
  const options: string[] = []
  let searchDomains: string[] = []
  for (const line of text.split('\n')) {
    // As res_init.c of glibc: the keyword begins in the first column, only blanks divide, and a carriage return belongs to the value.
    const [keyword, ...values] = line
      .replace(/(?:^|[ \t])[#;][^]*/, '')
      .split(/[ \t]+/)
      .filter((value, index) => index === 0 || value !== '')
    if (keyword === 'nameserver' && values[0]) (isServer(values[0]) ? nameservers : invalid).push(values[0])
    else if (keyword === 'options') options.push(...values)
    else if (keyword === 'search') searchDomains = values
    else if (keyword === 'domain') searchDomains = values.slice(0, 1)
  }
  return {
    nameservers: unique(nameservers),
    options: unique(options),
    // With a carriage return at its end a domain has no names.
    searchDomains: unique(searchDomains.filter((domain) => domain !== '.' && !domain.includes('\r'))),
    invalid: unique(invalid),
  }
}

/** Whether the resolver accepts a text as an address. */
const isServer = (text: string): boolean => addressOfServer(text) !== undefined

/**
 * The address that the resolver takes a text for: inet_aton(3), which accepts the short, octal and hexadecimal forms of
 * IPv4 that the URL standard accepts too, or inet_pton(3) with an interface after `%`; undefined where it takes none.
 */
export function addressOfServer(text: string): string | undefined {
  if (isIP(text) !== 0) return text
  // Unlike inet_aton(3), the URL standard takes a dot at the end.
  const short = /^[0-9a-fx.]*[0-9a-fx]$/i.test(text) ? (URL.parse(`http://${text}`)?.hostname ?? '') : ''
  return isIP(short) === 4 ? short : undefined
}

/** The address in systemd's `ADDRESS[:PORT][%INTERFACE][#NAME]`; an IPv6 address with a port is in brackets. */
function serverAddress(server: string): string {
  const bare = server.split(/[#%]/)[0] ?? ''
  const bracketed = /^\[(.+)\]/.exec(bare)
  if (bracketed) return bracketed[1] ?? ''
  return /^[\d.]+:\d+$/.test(bare) ? (bare.split(':')[0] ?? '') : bare
}

/** Each value once, in order, without empty ones. */
function unique(values: readonly string[]): string[] {
  return [...new Set(values)].filter((value) => value !== '')
}

/** DNS servers by interface index; links that have none of their own are not in the map. */
export type LinkServers = ReadonlyMap<number, readonly string[]>

interface LinkDnsReading {
  readonly servers: LinkServers
  readonly problems: readonly string[]
}

/**
 * Reads the DNS servers of links. Where systemd-resolved runs it is asked, since other users may not read its files.
 * Otherwise they come from networkd's state files, which stay valid when networkd stops.
 */
export async function readLinkDns(files: HostFiles, runner: CommandRunner): Promise<LinkDnsReading> {
  if (await isServiceRunning(files, resolvedService)) {
    const answer = await askResolved(runner)
    if ('servers' in answer) return { ...answer, problems: [] }
    return { servers: await readNetworkd(files), problems: [answer.problem] }
  }
  return { servers: await readNetworkd(files), problems: [] }
}

type Server = readonly [family: number, address: readonly number[]]

/**
 * Asks for the property `DNS` of org.freedesktop.resolve1(5): first of the manager, to find the links that have servers,
 * then of each of these links. The manager's list alone is not enough: a server of the whole host that is reached over one
 * interface looks like a server of that link.
 */
async function askResolved(
  runner: CommandRunner,
): Promise<{ readonly servers: LinkServers } | { readonly problem: string }> {
  const host = await askServers(runner, '', 'Manager', 'a(iiay)')
  if ('problem' in host) return host
  const all = host.servers as readonly (readonly [index: number, ...Server])[]
  const indexes = [...new Set(all.map(([index]) => index))].filter((index) => index > 0)
  const found = new Map<number, readonly string[]>()
  for (const index of indexes.sort((a, b) => a - b)) {
    // The number as sd_bus_path_encode(3) encodes it: the first digit becomes its hexadecimal code, 3 and the digit.
    const link = await askServers(runner, `/link/_3${index}`, 'Link', 'a(iay)')
    if ('servers' in link) {
      const servers = unique((link.servers as readonly Server[]).map(([, address]) => addressText(address)))
      if (servers.length > 0) found.set(index, servers)
    }
    // A link that was removed since the manager answered has no servers.
    else if (!link.problem.includes('Unknown object')) return link
  }
  return { servers: found }
}

async function askServers(
  runner: CommandRunner,
  path: string,
  kind: string,
  type: string,
): Promise<{ readonly servers: unknown } | { readonly problem: string }> {
  const answer = await askProperties(runner, {
    service: 'org.freedesktop.resolve1',
    path: `/org/freedesktop/resolve1${path}`,
    interface: `org.freedesktop.resolve1.${kind}`,
  })
  if ('problem' in answer) return answer
  const servers = propertyOf(answer.properties, 'DNS', type)
  if (servers !== undefined) return { servers }
  return { problem: `systemd-resolved: ${kind} has no property DNS of the type ${type}` }
}

/** Formats an address as inet_ntop(3) does; empty where the bytes are no address. */
function addressText(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.')
  return bytes.length === 16 ? addressOfHex(Buffer.from(bytes).toString('hex')) : ''
}

async function readNetworkd(files: HostFiles): Promise<LinkServers> {
  const folder = '/run/systemd/netif/links'
  const found = new Map<number, readonly string[]>()
  for (const index of await files.names(folder)) {
    const value = parseAssignments((await files.text(`${folder}/${index}`)) ?? '').get('DNS')
    const servers = addresses(value ?? '')
    if (servers.length > 0) found.set(Number(index), servers)
  }
  return found
}

function addresses(text: string): readonly string[] {
  return unique(text.split(/\s+/).map(serverAddress))
}
