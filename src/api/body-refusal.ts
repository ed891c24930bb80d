import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AppError } from '../errors/app-error.ts'

// An event of our own: the `error` event of Node would look like an error of the connection.
const refused = Symbol('refused')

/**
 * Notifies the reader of a body that the rest of it is refused, so that the reader ends and the app replies with the reason.
 * The connection ends with that reply.
 * @returns false if nothing reads the body
 */
export function refuseBody(request: IncomingMessage, response: ServerResponse, reason: AppError): boolean {
  if (request.listenerCount(refused) === 0) return false
  response.setHeader('connection', 'close')
  return request.emit(refused, reason)
}

/** Adds a listener for the refusal of a body; every reader of a body needs one. */
export const onBodyRefused = (request: IncomingMessage, listener: (reason: AppError) => void) =>
  request.on(refused, listener)

/** Removes such a listener when its reader has ended. */
export const offBodyRefused = (request: IncomingMessage, listener: (reason: AppError) => void) =>
  request.off(refused, listener)
