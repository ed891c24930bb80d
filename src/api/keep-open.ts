import type { FastifyReply } from 'fastify'

/**
 * Keeps the connection of a request open while no bytes move and that is due to this program: its body waits unread for a place, or is whole and being
 * checked. With a listener for 'timeout', Node does not close it; a client that sends nothing of a body that is being read is closed here.
 */
export function keepOpen({ raw, request: { raw: request } }: FastifyReply): void {
  raw.on('timeout', () => {
    if (!request.complete && request.readableFlowing === true) request.socket.destroy()
  })
}
