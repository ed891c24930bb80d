import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AppError } from '../errors/app-error.ts'

// An event of our own: Node's `error` would be taken for one of the connection.
const refused = Symbol('refused')

/**
 * Tells the reader of a body that the rest of it is refused, so that the reader ends and the app answers with the reason. The
 * connection ends with that reply.
 * @returns false where nothing reads the body
 */
export function refuseBody(request: IncomingMessage, response: ServerResponse, reason: AppError): boolean {
  if (request.listenerCount(refused) === 0) return false
  response.setHeader('connection', 'close')
  return request.emit(refused, reason)
}

/** Every reader of a body listens for its refusal. */
export const onBodyRefused = (request: IncomingMessage, listener: (reason: AppError) => void) =>
  request.on(refused, listener)

/** Once it has ended, it no longer does. */
export const offBodyRefused = (request: IncomingMessage, listener: (reason: AppError) => void) =>
  request.off(refused, listener)
