import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Returns a function that finds the current reply on a socket of a server: the first one that has not ended. */
export function watchReplies(server: Server): (socket: Socket) => ServerResponse | undefined {
  const replies = new WeakMap<Socket, Set<ServerResponse>>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const known = replies.get(socket)
    const ofSocket = known ?? new Set()
    if (!known) replies.set(socket, ofSocket)
    ofSocket.add(response)
    response.once('close', () => ofSocket.delete(response))
  })
  return (socket) => replies.get(socket)?.values().next().value
}
