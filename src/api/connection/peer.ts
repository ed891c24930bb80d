import type { Socket } from 'node:net'
import { canonicalAddress, localAddress } from '../../base/address.ts'
import type { Client, ClientOf } from '../../base/client.ts'

/** Who is at the other end of a connection. */
export interface Peer {
  /** In the canonical form of `base/address.ts`; `local` on the daemon's own socket. */
  readonly address: string
  /** The client that the address belongs to. */
  readonly client: Client
  /** The connection came over the daemon's own socket, which only root may open. */
  readonly isLocal: boolean
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
}

/** The peer of a connection that ended before its address was read. */
const unknownPeer: Peer = { address: '', client: { name: '', network: undefined }, isLocal: false }

/**
 * Returns a function that finds the peer of a socket. The address is read once for each connection, not for each request.
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
