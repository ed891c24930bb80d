import type { ApiSettings } from '../config.ts'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { AppError } from '../../errors/app-error.ts'
import { apiErrors } from '../codes.ts'
import { refuseBody } from '../body-refusal.ts'
import type { Replies } from '../replies.ts'
import { requestIdOf } from '../request-id.ts'
import { FedSocket, isBeingRead } from './fed-socket.ts'

export type BodyRate = Omit<ApiSettings['body'], 'limitBytes'>

interface Body {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Monotonic milliseconds and bytes of the connection at the start of the window. */
  since: number
  bytes: number
  refused: boolean
}

/**
 * Refuses requests whose body arrives below a rate, however long the whole body takes. While the handler does not read what
 * has arrived, the time does not count: then the host is slow, not the client.
 * The reader of the body is notified (`body-refusal.ts`) and replies; if nothing reads the body, this function replies 408.
 * @param replies form of that reply
 * @returns a function that stops watching
 */
export function watchBodyRate(
  server: Server,
  { minimumBytesPerSecond, windowSeconds }: BodyRate,
  { headers, errorType, errorBody }: Replies,
): () => void {
  const bodies = new Set<Body>()
  const windowMs = windowSeconds * 1_000
  const message = `the body arrived below ${minimumBytesPerSecond} bytes a second over ${windowSeconds} seconds; send it faster`
  let timer: NodeJS.Timeout | undefined

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    if (encoding === undefined && (length === undefined || Number(length) === 0)) return
    const body = {
      request,
      response,
      since: performance.now(),
      bytes: request.socket.bytesRead,
      refused: false,
    }
    bodies.add(body)
    response.once('close', () => {
      if (!body.refused) bodies.delete(body)
    })
    // One timer for all, and only while a body is arriving.
    timer ??= setInterval(check, Math.min(1_000, windowMs / 10)).unref()
  }

  function check(): void {
    const now = performance.now()
    for (const body of bodies) {
      const { request } = body
      if (body.refused) {
        // The reader may have to remove what it has stored, and to record the refusal, before the app replies.
        if (!body.response.writableFinished && !request.socket.destroyed && now - body.since < windowMs)
          continue
        bodies.delete(body)
        request.socket.destroy()
      } else if (request.complete || request.destroyed) {
        bodies.delete(body)
      } else if (waitingBytes(request) > 0 || isUnasked(request)) {
        beginWindow(body, now)
      } else if (now - body.since >= windowMs) {
        const needed = (minimumBytesPerSecond * (now - body.since)) / 1_000
        if (request.socket.bytesRead - body.bytes < needed) refuse(body, now)
        else beginWindow(body, now)
      }
    }
    if (bodies.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  function beginWindow(body: Body, now: number): void {
    body.since = now
    body.bytes = body.request.socket.bytesRead
  }

  // A later check closes the connection: once the reply was sent, or after another window without one.
  function refuse(body: Body, now: number): void {
    const { request, response } = body
    body.refused = true
    body.since = now
    if (response.headersSent) {
      request.socket.destroy()
      return
    }
    const error = new AppError(apiErrors.RequestTimeout, message)
    if (refuseBody(request, response, error)) return
    const id = requestIdOf(request.headers)
    const text = JSON.stringify(errorBody(error, id))
    response.writeHead(error.status, {
      ...headers,
      ...{ 'content-type': errorType, 'content-length': Buffer.byteLength(text) },
      ...{ 'x-request-id': id, connection: 'close' },
    })
    response.end(text)
  }

  server.on('request', onRequest)
  return () => {
    server.off('request', onRequest)
    clearInterval(timer)
    timer = undefined
  }
}

/** Whether the client waits for `100 Continue`, which is sent when the body is read: an upload may wait for its place before. */
const isUnasked = (request: IncomingMessage): boolean =>
  request.headers.expect !== undefined && request.readableFlowing === null && !isBeingRead(request)

/** Bytes that have arrived, and that the host has not read yet. */
function waitingBytes({ readableLength, socket }: IncomingMessage): number {
  return (
    readableLength +
    ((socket as unknown) instanceof FedSocket ? (socket as unknown as FedSocket).heldBytes : 0)
  )
}
