import { join } from 'node:path'
import { isIPv6 } from '../base/address.ts'
import { program } from '../base/program.ts'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'

/** Another host, over HTTPS. */
export interface HostTarget {
  readonly kind: 'host'
  /** A name or an address, an IPv6 one without brackets. */
  readonly host: string
  readonly port: number
  /** As a user types it: `box`, `box:8443`, `[2001:db8::7]`. */
  readonly name: string
  /** Files of the key and of the session. */
  readonly keyFile: string
  readonly sessionFile: string
  readonly lockFile: string
}

/** This host, over the socket of its daemon. */
export interface SocketTarget {
  readonly kind: 'socket'
  readonly path: string
}

export type Target = HostTarget | SocketTarget

const { port: defaultPort, folder: programFolder } = program
/** Of the daemon on this host. */
export const defaultSocket = `/run/${programFolder}/${programFolder}.sock`
// A name (RFC 1123, and underscores, which some factories use), an IPv4 address, or an IPv6 address with or without a zone.
const hostSyntax = /^(?:\[([0-9a-fA-F:.]+(?:%[\w.-]+)?)\]|([A-Za-z0-9_](?:[\w.-]{0,252})))(?::(\d{1,5}))?$/

const isIPv6WithZone = (text: string) => isIPv6(text.replace(/%.*$/, ''))

/** Environment variables of the target. */
export const environmentNames = {
  host: `${program.ctl.toUpperCase()}_HOST`,
  socket: `${program.ctl.toUpperCase()}_SOCKET`,
} as const

export interface Choice {
  readonly host?: string | undefined
  readonly socket?: string | undefined
}

/**
 * The target of a command line: options win over the environment, a host over the socket.
 * @param folder of keys and tokens; called only if it is needed, since root on a host needs no home folder
 */
export function chooseTarget(given: Choice, environment: NodeJS.ProcessEnv, folder: () => string): Target {
  if (given.host !== undefined && given.socket !== undefined)
    throw new Failure('usage', '--host and --socket exclude each other')
  if (given.host !== undefined) return parseHost(given.host, folder())
  if (given.socket !== undefined) return { kind: 'socket', path: given.socket }
  if (environment[environmentNames.host]) return parseHost(environment[environmentNames.host] ?? '', folder())
  return { kind: 'socket', path: environment[environmentNames.socket] || defaultSocket }
}

/**
 * Parses a host.
 * @param text a name or an address, with or without a port; also https://HOST:PORT, as `status` prints it
 * @throws Failure usage
 */
export function parseHost(text: string, folder: string): HostTarget {
  const [, bare = text, path = ''] = /^(?:https:\/\/)?([^/]+)(.*)$/i.exec(text) ?? []
  const match = hostSyntax.exec(isIPv6WithZone(bare) ? `[${bare}]` : bare)
  const host = (match?.[1] ?? match?.[2])?.toLowerCase()
  const isMalformed = match?.[1] !== undefined && !isIPv6WithZone(match[1])
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  const isHost = host !== undefined && !isMalformed && port >= 1 && port <= 65_535
  if (!isHost || !/^\/*$/.test(path))
    throw new Failure(
      'usage',
      `${printable(text)} ${isHost ? 'has a path after the host' : 'is not a host'}; write NAME, ADDRESS, NAME:PORT, [IPV6]:PORT or https://HOST:PORT`,
    )
  const bracketed = host.includes(':') ? `[${host}]` : host
  const file = `${encodeURIComponent(host)}_${port}.json`
  return {
    kind: 'host',
    host,
    port,
    name: port === defaultPort ? bracketed : `${bracketed}:${port}`,
    keyFile: join(folder, 'hosts', file),
    sessionFile: join(folder, 'sessions', file),
    lockFile: join(folder, 'sessions', 'lock'),
  }
}
