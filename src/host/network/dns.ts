import { isIP } from 'node:net'
import { printable } from '../../base/printable.ts'
import { passRefused, type HostFiles } from '../files.ts'
import { isServiceRunning } from '../services.ts'

/** How this host resolves names. */
export interface Dns {
  readonly nameservers: readonly string[]
  /** As resolv.conf(5) spells them, for example `ndots:5`. */
  readonly options: readonly string[]
  readonly searchDomains: readonly string[]
}

export interface DnsReading {
  readonly dns: Dns
  readonly problems: readonly string[]
}

// <resolv.h>: the C library's resolver uses at most this many servers.
const MAXNS = 3
// The addresses on which systemd-resolved itself listens (systemd-resolved.service(8)), not those of its servers.
const stubs = new Set(['127.0.0.53', '127.0.0.54'])
export const resolvedService = 'systemd-resolved.service'

/**
 * Reads how the host resolves names. Where systemd-resolved runs, servers and search domains come from its files: those of
 * the host before those of links, and fallback servers only where there are no others (systemd-resolved.service(8)).
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
export function serverAddress(server: string): string {
  const bare = server.split(/[#%]/)[0] ?? ''
  const bracketed = /^\[(.+)\]/.exec(bare)
  if (bracketed) return bracketed[1] ?? ''
  return /^[\d.]+:\d+$/.test(bare) ? (bare.split(':')[0] ?? '') : bare
}

/** Each value once, in order, without empty ones. */
export function unique(values: readonly string[]): string[] {
  return [...new Set(values)].filter((value) => value !== '')
}
