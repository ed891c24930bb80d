import { addressOfHex } from '../../base/address.ts'
import type { CommandRunner } from '../../system/runner.ts'
import type { HostFiles } from '../files.ts'
import { parseAssignments } from '../operating-system.ts'
import { askProperties, propertyOf } from '../properties.ts'
import { isServiceRunning } from '../services.ts'
import { resolvedService, serverAddress, unique } from './dns.ts'

/** DNS servers by interface index; links that have none of their own are not in the map. */
export type LinkServers = ReadonlyMap<number, readonly string[]>

export interface LinkDnsReading {
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
