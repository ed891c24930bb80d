import { isIPv4, type Socket } from 'node:net'
import { canonicalAddress, isAddress, isLoopback, localAddress } from '../../base/address.ts'
import type { IncomingMessage } from 'node:http'
import type { Client, ClientOf } from '../../base/client.ts'

// More proxies than any site has in a row.
const mostHops = 16
// `[2001:db8:…]:65535`; an IPv6 address has at most 45 characters.
const longestValue = 64

/**
 * The client behind a trusted proxy, from the field `X-Forwarded-For`, whose addresses each proxy appends to at the right. The right-most
 * address that is no trusted proxy counts; anything to its left may be invented by a client and is not read. A loopback address is one of
 * the machine that wrote it, so that no client is ever taken for one on this machine.
 * @param proxy address of the connection, in canonical form
 * @param field all values of the field, as Node joins them
 * @returns an address in canonical form; undefined where the field is malformed, since nothing of such a field can be trusted
 */
export function forwardedClient(
  field: string,
  proxy: string,
  isTrusted: (address: string) => boolean,
): string | undefined {
  let client = proxy
  let end = field.length
  for (let hop = 0; hop < mostHops && end >= 0; hop += 1) {
    const comma = end === 0 ? -1 : field.lastIndexOf(',', end - 1)
    const address = addressOf(field.slice(comma + 1, end))
    if (address === undefined) return undefined
    if (!isLoopback(address)) client = address
    if (!isTrusted(address)) return client
    end = comma
  }
  // Every address belongs to a trusted proxy: the request began at one.
  return end >= 0 ? undefined : client
}

/** Some proxies append the port of the client: `192.0.2.7:4711`, `[2001:db8::7]:4711`. */
function addressOf(value: string): string | undefined {
  if (value.length > longestValue) return undefined
  const text = value.trim()
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? []
  const written = bracketed ?? plain ?? text
  // Within brackets there is only IPv6.
  if (!isAddress(written) || (bracketed !== undefined && isIPv4(written))) return undefined
  return canonicalAddress(written)
}

/** The other end of a connection. */
export interface Peer {
  /** In the canonical form of `base/address.ts`; `local` on the daemon's own socket. */
  readonly address: string
  /** The client that the address belongs to. */
  readonly client: Client
  /** The connection came over the daemon's own socket, which only root may open. */
  readonly isLocal: boolean
  /** The connection comes from a trusted proxy: the address is the one that it forwards for, or its own where it forwards for none. */
  readonly isProxied: boolean
  /** The proxy forwards for an address that cannot be read; the address is then its own. */
  readonly isUnreadable?: true
}

declare module 'fastify' {
  interface FastifyRequest {
    peer: Peer
  }
}

/** The peer of every connection on the local socket. */
export const localPeer: Peer = {
  address: localAddress,
  client: { name: localAddress, network: undefined },
  isLocal: true,
  isProxied: false,
}

/** The peer of a connection that ended before its address was read. */
const unknownPeer: Peer = {
  address: '',
  client: { name: '', network: undefined },
  isLocal: false,
  isProxied: false,
}

interface PeerOptions {
  /** Whether a connection came over the local socket. */
  readonly isLocal: (socket: Socket) => boolean
  readonly clientOf: ClientOf
  /** Whether an address belongs to a trusted proxy; by default none does. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

interface Peers {
  /** The other end of a socket. Its address is read once for each connection, not for each request. */
  ofSocket(socket: Socket): Peer
  /**
   * The client of a request: the other end of its connection, or behind a trusted proxy the one that the proxy forwards for.
   */
  ofRequest(request: Pick<IncomingMessage, 'socket' | 'headers'>): Peer
}

export function createPeers({ isLocal, clientOf, isProxy = () => false }: PeerOptions): Peers {
  const peers = new WeakMap<Socket, Peer>()

  function peerOf(address: string, isProxied: boolean): Peer {
    return { address, client: clientOf(address), isLocal: false, isProxied }
  }

  function remotePeer({ remoteAddress }: Socket): Peer {
    if (remoteAddress === undefined) return unknownPeer
    const address = canonicalAddress(remoteAddress)
    return peerOf(address, isProxy(address))
  }

  function ofSocket(socket: Socket): Peer {
    const known = peers.get(socket)
    if (known !== undefined) return known
    const peer = isLocal(socket) ? localPeer : remotePeer(socket)
    peers.set(socket, peer)
    return peer
  }

  return {
    ofSocket,
    ofRequest({ socket, headers }) {
      const peer = ofSocket(socket)
      if (!peer.isProxied) return peer
      const field = headers['x-forwarded-for']
      if (field === undefined) return peer
      const address = forwardedClient([field].flat().join(','), peer.address, isProxy)
      return address === undefined ? { ...peer, isUnreadable: true } : peerOf(address, true)
    },
  }
}
