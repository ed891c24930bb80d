import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify'
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { offBodyRefused, onBodyRefused } from './replies.ts'
import { connectionEnded } from './errors.ts'
import { describeForm } from './json-form.ts'
import { createGrowingBuffer } from '../base/growing-buffer.ts'

/**
 * Reads bodies of `application/json` into one buffer, and refuses every other type: no route accepts text, and a page
 * of another site can send it without a preflight. Fastify's own reader keeps an object for each chunk of the wire: a client
 * that sends chunks of one byte would fill the memory long before the limit of the body.
 */
export function addJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  acceptJson(app, ['application/json'])
}

/** Lets the routes of a plugin also take JSON of other media types, read in the same way. */
export function acceptJson(
  app: Pick<FastifyInstance, 'getDefaultJsonParser' | 'addContentTypeParser'>,
  types: string[],
): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser(types, (request: FastifyRequest, payload: IncomingMessage, done) => {
    readBody(request, payload, (error, text) => {
      const problem = error ?? refusalOf(text)
      if (problem) done(problem)
      else void parse(request, text, done)
    })
  })
}

function refusalOf(text: string): AppError | undefined {
  const problem = describeForm(text)
  return problem === undefined ? undefined : new AppError(generalErrors.BadRequest, problem)
}

// A body whose rest does not arrive must not delay a stop of the daemon.
const lastBodyMs = 1_000

type Done = (error: Error | undefined, text: string) => void

/** Reads a body up to its limit, which Fastify checks only for bodies that it reads itself. */
function readBody(request: FastifyRequest, payload: IncomingMessage, done: Done): void {
  const limit = request.routeOptions.bodyLimit
  const announced = request.headers['content-length']
  if (Number(announced) > limit) {
    done(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE(), '')
    return
  }
  if (payload.destroyed && !payload.readableEnded) {
    done(connectionEnded(), '')
    return
  }
  const { stopping } = request.server
  const body = createGrowingBuffer(limit)
  let timer: NodeJS.Timeout | undefined
  const finish: Done = (error, text) => {
    clearTimeout(timer)
    stopping.removeEventListener('abort', onStop)
    payload.off('data', onData).off('end', onEnd).off('error', onError)
    offBodyRefused(payload, onRefused)
    done(error, text)
  }
  const onData = (chunk: Buffer) => {
    if (!body.add(chunk)) finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE(), '')
  }
  const onEnd = () => {
    const bytes = body.bytes()
    if (announced !== undefined && Number(announced) !== bytes.length)
      finish(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH(), '')
    // Read as UTF-8, a password in another encoding would become another one without a word.
    else if (!isUtf8(bytes))
      finish(new AppError(generalErrors.BadRequest, 'the body is not UTF-8, as JSON has to be'), '')
    else finish(undefined, bytes.toString('utf8'))
  }
  const onRefused = (reason: AppError) => finish(reason, '')
  const onStop = () => {
    timer = setTimeout(
      () => finish(new AppError(generalErrors.NotReady, 'the daemon stops; send the request again'), ''),
      lastBodyMs,
    )
  }
  // The error of a broken connection does not help a client.
  const onError = () => finish(connectionEnded(), '')
  payload.on('data', onData).on('end', onEnd).on('error', onError)
  onBodyRefused(payload, onRefused)
  if (stopping.aborted) onStop()
  else stopping.addEventListener('abort', onStop)
}
