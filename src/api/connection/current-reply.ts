import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'

/** Tells which reply of a server is in the making on a socket: the first one of those that have not ended. */
export function watchReplies(server: Server | HttpsServer): (socket: Socket) => ServerResponse | undefined {
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
