import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'

const bySocket = new WeakMap<Socket, Set<() => void>>()

/**
 * Calls a listener when a socket closes. Node does not notify a reply that waits behind another one when their connection is
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

/**
 * Aborted when the session of a request ends or its connection closes, with an AppError as its reason: its client waits for the reply no more.
 * Only the former happens after a reply.
 */
export function requestEnd({ sessionEnd, socket }: FastifyRequest, { raw }: FastifyReply): AbortSignal {
  const closed = new AbortController()
  const end = () => closed.abort(clientGone())
  const forget = onClosing(socket, end)
  // Also when the connection closes, and before the socket says so; but not for a reply that waits behind another one.
  raw.once('close', () => {
    forget()
    if (!raw.writableFinished) end()
  })
  return AbortSignal.any([sessionEnd, closed.signal])
}

/** `requestEnd`, for a request that waits long for a place or a check: its connection stays open meanwhile, see `keepOpen`. */
export function waitingEnd(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  keepOpen(reply)
  return requestEnd(request, reply)
}

const clientGone = () => new AppError(generalErrors.BadRequest, 'the connection ended before the reply')

/**
 * Keeps the connection of a request open while no bytes move and that is due to this program: its body waits unread for a place, or is whole and being
 * checked. With a listener for 'timeout', Node does not close it; a client that sends nothing of a body that is being read is closed here.
 */
export function keepOpen({ raw, request: { raw: request } }: FastifyReply): void {
  raw.on('timeout', () => {
    if (!request.complete && request.readableFlowing === true) request.socket.destroy()
  })
}

/** Calls when the reply has left, and when its connection has closed, so perhaps twice: its client may be gone before. */
export function whenSent({ raw }: FastifyReply, call: () => void): void {
  for (const end of ['finish', 'close'] as const) raw.once(end, call)
}
