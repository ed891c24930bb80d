import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Requests of one connection that wait for those before them. Clients of registries wait for each reply. */
const mostWaiting = 64

/**
 * Handles the requests of each connection one after the other. Node hands over at once all that a client sends without waiting: each
 * would hold an open file and a buffer until its turn comes, and a megabyte of requests would use up all files of the daemon. A
 * connection on which more wait is closed.
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
    } else if (waiting.length < mostWaiting) waiting.push(() => handle(request, response))
    else socket.destroy()
  }
}
