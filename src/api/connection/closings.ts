import type { Socket } from 'node:net'

const bySocket = new WeakMap<Socket, Set<() => void>>()

/**
 * Calls a listener when a socket closes. A reply that waits behind another one on its connection is not told by Node when that is
 * lost, and a listener of its own on the socket for each would be too many.
 * @returns a function that removes the listener
 */
export function onClosing(socket: Socket, listener: () => void): () => void {
  if (socket.destroyed) {
    listener()
    return () => undefined
  }
  let listeners = bySocket.get(socket)
  if (!listeners) {
    const added = new Set<() => void>()
    bySocket.set(socket, (listeners = added))
    socket.once('close', () => added.forEach((each) => each()))
  }
  const known = listeners
  known.add(listener)
  return () => known.delete(listener)
}
