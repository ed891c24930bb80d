import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { offBodyRefused, onBodyRefused } from '../api/replies.ts'
import { drainedBytes } from '../api/connection/waiting-replies.ts'
import { connectionEnded } from '../api/errors.ts'
import type { AppError } from '../errors/app-error.ts'

/**
 * Adds routes that accept only some media types. Their handler gets the body unread and reads it with `readBody`.
 * @param addRoutes the plugin with these routes
 */
export async function addRawBodies(
  app: FastifyInstance,
  addRoutes: FastifyPluginAsync,
  types: string | string[] = 'application/octet-stream',
): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(types, (_request, _payload, done) => done(null))
    await scope.register(addRoutes)
  })
}

/**
 * Passes the chunks of a body to a function in the order of their arrival. It resolves at the end of the body.
 * @param onChunk a promise that it returns is awaited before the next chunk
 * @param signal ends the reading with its reason, an AppError
 * @throws AppError BadRequest when the connection ends before the body; the error that the body was refused with, for example
 * `RequestTimeout`; any error of `onChunk`. The rest of the body is then left unread
 */
export async function readBody(
  request: IncomingMessage,
  onChunk: (chunk: Buffer) => Promise<void> | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (request.destroyed && !request.readableEnded) throw connectionEnded()
  const { promise, resolve, reject } = Promise.withResolvers()
  let taken: Promise<void> | undefined

  const onData = (chunk: Buffer) => {
    try {
      taken = onChunk(chunk)
    } catch (error) {
      reject(error)
      return
    }
    if (taken === undefined) return
    request.pause()
    taken.then(() => request.resume(), reject)
  }
  // The request also closes after its end, maybe while the last chunk is being taken.
  const onEnd = () => {
    request.off('close', onClose)
    finish()
  }
  const finish = () => (taken ? void taken.then(() => resolve(undefined), reject) : resolve(undefined))
  const onClose = () => reject(connectionEnded())
  const onAbort = () => reject(signal.reason as AppError)

  request.on('data', onData).once('end', onEnd).once('error', onClose).once('close', onClose)
  onBodyRefused(request, reject)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  // An empty body may have ended already.
  if (request.readableEnded) resolve(undefined)
  try {
    await promise
  } catch (error) {
    request.off('data', onData)
    letBodyGo(request)
    throw error
  } finally {
    request.off('data', onData).off('end', onEnd).off('close', onClose)
    offBodyRefused(request, reject)
    signal.removeEventListener('abort', onAbort)
  }
}

/** Discards a bounded rest of the body; beyond that it stops reading, and the end of the reply closes the connection. */
export function letBodyGo(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', ({ length }: Buffer) => {
    bytes += length
    if (bytes > drainedBytes) request.pause()
  })
  // An error of the connection has been reported already.
  request.on('error', () => undefined)
  request.resume()
}
