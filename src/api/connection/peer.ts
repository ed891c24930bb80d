import type { Socket } from 'node:net'
import { canonicalAddress, localAddress } from '../../base/address.ts'
import type { Client, ClientOf } from '../../base/client.ts'

/** Who is at the other end of a connection. */
export interface Peer {
  /** As the rest of the daemon knows it; `local` on the daemon's own socket. */
  readonly address: string
  /** Who that counts as. */
  readonly client: Client
  /** Came over the daemon's own socket, which root alone may open. */
  readonly isLocal: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The client. */
    peer: Peer
  }
}

/** The peer of every connection on the local socket. */
export const localPeer: Peer = {
  address: localAddress,
  client: { name: localAddress, network: undefined },
  isLocal: true,
}

/** The connection has ended before it was looked at. */
const unknownPeer: Peer = { address: '', client: { name: '', network: undefined }, isLocal: false }

/**
 * Tells the peer of a socket, looked at once: one connection carries many requests, all from one address.
 * @param isLocal whether a connection came over the local socket
 */
export function createPeers(
  isLocal: (socket: Socket) => boolean,
  clientOf: ClientOf,
): (socket: Socket) => Peer {
  const peers = new WeakMap<Socket, Peer>()
  return (socket) => {
    const known = peers.get(socket)
    if (known !== undefined) return known
    const peer = isLocal(socket) ? localPeer : remotePeer(socket, clientOf)
    peers.set(socket, peer)
    return peer
  }
}

function remotePeer({ remoteAddress }: Socket, clientOf: ClientOf): Peer {
  if (remoteAddress === undefined) return unknownPeer
  const address = canonicalAddress(remoteAddress)
  return { address, client: clientOf(address), isLocal: false }
}
