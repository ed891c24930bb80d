import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { onClosing } from './connection/closings.ts'

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

const clientGone = () => new AppError(generalErrors.BadRequest, 'the connection ended before the reply')
