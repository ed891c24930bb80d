import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Handles the requests of each connection one after the other. A client may send many without waiting: each would hold an
 * open file and a buffer until its turn comes. How many may wait is bounded for all servers by `api/connection/fed-socket.ts`.
 */
export function oneAtATime(handler: Handler): Handler {
  const waitingOn = new WeakMap<Socket, (() => void)[]>()

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    response.once('close', () => {
      const next = socket.destroyed ? undefined : waitingOn.get(socket)?.shift()
      if (next) next()
      else waitingOn.delete(socket)
    })
    handler(request, response)
  }

  return (request, response) => {
    const { socket } = request
    const waiting = waitingOn.get(socket)
    if (!waiting) {
      waitingOn.set(socket, [])
      handle(request, response)
    } else waiting.push(() => handle(request, response))
  }
}
