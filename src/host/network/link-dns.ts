import { SocketAddress } from 'node:net'
import type { Bus } from '../../system/bus/bus.ts'
import { BusFailed } from '../../system/bus/failure.ts'
import { askService } from '../ask.ts'
import type { HostFiles } from '../files.ts'
import { parseAssignments } from '../operating-system.ts'
import { isServiceRunning } from '../services.ts'
import { resolvedService, serverAddress, unique } from './dns.ts'

/** DNS servers by interface index; links that have none of their own are not in the map. */
export type LinkServers = ReadonlyMap<number, readonly string[]>

export interface LinkDnsReading {
  readonly servers: LinkServers
  readonly problems: readonly string[]
}

export interface LinkDnsOptions {
  readonly files: HostFiles
  readonly bus: Bus
  /** Milliseconds of a clock that only goes forward. */
  readonly monotonic: () => number
}

// What moves a server from one link to another leaves resolved's list as it was.
const askAgainAfterMs = 300_000
// Two questions one after the other have to fit into what a fact may take.
const timeoutMs = 2_000

/**
 * Asks for the DNS servers of links: systemd-resolved where it runs, over the bus, since its own files are closed to
 * others; else networkd's state files, which stay in force when networkd stops. resolved is asked again only when
 * its list of all servers or those files have changed, or after five minutes.
 */
export function createLinkDns({ files, bus, monotonic }: LinkDnsOptions): () => Promise<LinkDnsReading> {
  let last: { key: string; askedAt: number; reading: LinkDnsReading } | undefined

  return async () => {
    const networkd = await readNetworkd(files)
    if (!(await isServiceRunning(files, resolvedService))) return { servers: networkd, problems: [] }
    const list = await files.text('/run/systemd/resolve/resolv.conf')
    const key = JSON.stringify([list, ...networkd])
    if (last?.key !== key || monotonic() - last.askedAt >= askAgainAfterMs) {
      last = { key, askedAt: monotonic(), reading: await askResolved(bus, networkd) }
    }
    return last.reading
  }
}

async function askResolved(bus: Bus, otherwise: LinkServers): Promise<LinkDnsReading> {
  const answer = await askService(readResolved(bus))
  return 'problem' in answer
    ? { servers: otherwise, problems: [answer.problem] }
    : { servers: answer.said, problems: [] }
}

/**
 * Reads the property `DNS` of org.freedesktop.resolve1(5), of the manager for the links that have servers, then of each
 * of these: in the manager's list a server of the whole host that is reached over one interface looks like the link's own.
 */
async function readResolved(bus: Bus): Promise<LinkServers> {
  const all = await readServers<readonly [index: number, ...ServerStruct]>(bus, '', 'Manager', 'a(iiay)')
  const indexes = [...new Set(all.map(([index]) => index))].filter((index) => index > 0).sort((a, b) => a - b)
  const links = indexes.map(async (index) => [index, await readLink(bus, index)] as const)
  return new Map((await Promise.all(links)).filter(([, servers]) => servers.length > 0))
}

async function readLink(bus: Bus, index: number): Promise<readonly string[]> {
  try {
    // As sd_bus_path_encode(3) spells a number: its first digit by its code, which is 3 and the digit.
    const servers = await readServers<ServerStruct>(bus, `/link/_3${index}`, 'Link', 'a(iay)')
    return unique(servers.map(([, address]) => addressText(address)))
  } catch (error) {
    // Gone since the manager was asked.
    if (error instanceof BusFailed && error.errorName === 'org.freedesktop.DBus.Error.UnknownObject')
      return []
    throw error
  }
}

type ServerStruct = readonly [family: number, address: Uint8Array]

async function readServers<Server>(
  bus: Bus,
  path: string,
  kind: string,
  type: string,
): Promise<readonly Server[]> {
  const object = {
    service: 'org.freedesktop.resolve1',
    path: `/org/freedesktop/resolve1${path}`,
    interface: `org.freedesktop.resolve1.${kind}`,
  }
  return (await bus.get(object, 'DNS', type, timeoutMs)) as unknown as readonly Server[]
}

/** Spells an address as inet_ntop(3) does; empty what is none. */
function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  const groups = Buffer.from(bytes).toString('hex').match(/..../g) ?? []
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address
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
