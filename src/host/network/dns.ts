import { isIP } from 'node:net'
import { printable } from '../../base/printable.ts'
import type { HostFiles } from '../files.ts'
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

// <resolv.h>: the resolver of the C library asks no more servers than these.
const MAXNS = 3
// Where systemd-resolved listens itself (systemd-resolved.service(8)); the servers it asks are elsewhere.
const stubs = new Set(['127.0.0.53', '127.0.0.54'])
export const resolvedService = 'systemd-resolved.service'

/**
 * Asks the files of a systemd-resolved that runs: its servers and search domains, of the host before those of
 * links, and the fallback servers only where there is no other (systemd-resolved.service(8)). Servers on another
 * port than 53, and of links for single domains only, are not among them. Programs read
 * /etc/resolv.conf, which answers for the options, and for everything where resolved does not run. It leaves
 * its files behind when it stops; they count then only as what is behind the stub.
 */
export async function readDns(files: HostFiles): Promise<DnsReading> {
  const path = '/etc/resolv.conf'
  const { strangers, ...said } = parseResolvConf((await files.text(path)) ?? '')
  // Only those that are addresses count, res_init.c of glibc.
  const configured = { ...said, nameservers: said.nameservers.slice(0, MAXNS) }
  const [first] = strangers
  const others = strangers.length > 1 ? `, and ${strangers.length - 1} more` : ''
  return {
    dns: await readBehind(files, configured),
    problems:
      first === undefined
        ? []
        : [
            `${path}: "${printable(first)}" is no address, so no resolver asks it${others}; correct the line nameserver`,
          ],
  }
}

/** What is asked behind the file that programs read. */
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
 * Parses resolv.conf(5): the last `search` or `domain` wins, the rest adds up.
 * @returns beside it, in `strangers`, what stands as a server and is no address
 */
export function parseResolvConf(text: string): Dns & { readonly strangers: readonly string[] } {
  const nameservers: string[] = []
  const strangers: string[] = []
  const options: string[] = []
  let searchDomains: string[] = []
  for (const line of text.split('\n')) {
    // Keyword and value begin in the first column; # and ; begin a comment.
    const [keyword, ...values] = (line.split(/[#;]/)[0] ?? '').trimEnd().split(/\s+/)
    if (keyword === 'nameserver' && values[0]) (isServer(values[0]) ? nameservers : strangers).push(values[0])
    else if (keyword === 'options') options.push(...values)
    else if (keyword === 'search') searchDomains = values
    else if (keyword === 'domain') searchDomains = values.slice(0, 1)
  }
  return {
    nameservers: unique(nameservers),
    options: unique(options),
    searchDomains: unique(searchDomains.filter((domain) => domain !== '.')),
    strangers: unique(strangers),
  }
}

/**
 * Whether the resolver takes it for an address: inet_aton(3), which knows short, octal and hexadecimal forms of IPv4 as
 * the URL standard does, or inet_pton(3) with an interface behind `%`.
 */
function isServer(text: string): boolean {
  if (isIP(text) !== 0) return true
  return /^[0-9a-fx.]+$/i.test(text) && isIP(URL.parse(`http://${text}`)?.hostname ?? '') === 4
}

/** The address in systemd's `ADDRESS[:PORT][%INTERFACE][#NAME]`, an IPv6 one with a port in brackets. */
export function serverAddress(server: string): string {
  const bare = server.split(/[#%]/)[0] ?? ''
  const bracketed = /^\[(.+)\]/.exec(bare)
  if (bracketed) return bracketed[1] ?? ''
  return /^[\d.]+:\d+$/.test(bare) ? (bare.split(':')[0] ?? '') : bare
}

/** Each once, in their order, without empty ones. */
export function unique(values: readonly string[]): string[] {
  return [...new Set(values)].filter((value) => value !== '')
}
