import type { CommandRunner } from '../../system/runner.ts'
import { ask } from '../ask.ts'
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
  readonly runner: CommandRunner
  /** Milliseconds of a clock that only goes forward. */
  readonly monotonic: () => number
}

// What moves a server from one link to another leaves resolved's list as it was.
const askAgainAfterMs = 300_000
const timeoutMs = 3_000

/**
 * Asks for the DNS servers of links: systemd-resolved where it runs, by resolvectl(1), since its own files are closed
 * to others; else networkd's state files, which stay in force when networkd stops. resolved is asked again only when
 * its list of all servers or those files have changed, or after five minutes.
 */
export function createLinkDns({ files, runner, monotonic }: LinkDnsOptions): () => Promise<LinkDnsReading> {
  let last: { key: string; askedAt: number; reading: LinkDnsReading } | undefined

  return async () => {
    const networkd = await readNetworkd(files)
    if (!(await isServiceRunning(files, resolvedService))) return { servers: networkd, problems: [] }
    const list = await files.text('/run/systemd/resolve/resolv.conf')
    const key = JSON.stringify([list, ...networkd])
    if (last?.key !== key || monotonic() - last.askedAt >= askAgainAfterMs) {
      last = { key, askedAt: monotonic(), reading: await askResolved(runner, networkd) }
    }
    return last.reading
  }
}

async function askResolved(runner: CommandRunner, otherwise: LinkServers): Promise<LinkDnsReading> {
  const answer = await ask(runner, 'resolvectl', ['dns'], timeoutMs)
  return 'problem' in answer
    ? { servers: otherwise, problems: [answer.problem] }
    : { servers: parseResolvectlDns(answer.stdout), problems: [] }
}

/** Parses `resolvectl dns`: lines such as `Link 2 (eth0): 192.0.2.53 2001:db8::53#dns.example`. */
export function parseResolvectlDns(text: string): LinkServers {
  const lines = [...text.matchAll(/^Link (\d+) \([^)]*\): *(\S.*)$/gm)]
  return new Map(lines.map(([, index, servers]) => [Number(index), addresses(servers ?? '')]))
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
