import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { canonicalAddress, localAddress } from '../../base/address.ts'
import type { Client, ClientOf } from '../../base/client.ts'
import { forwardedClient } from './forwarded.ts'

/** Who is at the other end of a connection. */
export interface Peer {
  /** In the canonical form of `base/address.ts`; `local` on the daemon's own socket. */
  readonly address: string
  /** The client that the address belongs to. */
  readonly client: Client
  /** The connection came over the daemon's own socket, which only root may open. */
  readonly isLocal: boolean
  /** The connection is that of a trusted proxy: the address is the one that it forwards for, or its own where it forwards for none. */
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

export interface PeerOptions {
  /** Whether a connection came over the local socket. */
  readonly isLocal: (socket: Socket) => boolean
  readonly clientOf: ClientOf
  /** Whether an address is that of a trusted proxy; by default there are none. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

export interface Peers {
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
