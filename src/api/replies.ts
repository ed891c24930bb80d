import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AppError } from '../errors/app-error.ts'

const acceptable = /^[A-Za-z0-9._-]{1,64}$/

/**
 * The id of a request: the client's own `X-Request-Id` if it is safe in a log line and a header, otherwise a new one. An id
 * of a client need not be unique.
 */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && acceptable.test(given) ? given : randomUUID()
}

/** Common parts of all replies of one app. */
export interface Replies {
  /** Header fields of every reply. A route may override them. */
  readonly headers: Readonly<Record<string, string>>
  /** Media type of every refusal and failure. */
  readonly errorType: string
  /**
   * The one body of every refusal and failure, a value for JSON.
   * @param ref id of the request
   */
  errorBody(error: AppError, ref: string): unknown
}

/** Replies of the service API: JSON that no browser shows as a page and no proxy caches. */
export const apiReplies = {
  headers: { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' },
  errorType: 'application/json; charset=utf-8',
  errorBody: ({ code, message, details }, ref) => ({ code, message, ...(details ? { details } : {}), ref }),
} as const satisfies Replies

/** Header fields for an app whose replies a browser shows as pages. */
export const pageHeaders = {
  'strict-transport-security': 'max-age=63072000',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const

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
