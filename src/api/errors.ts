import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyError } from 'fastify'
import type { Logger } from 'pino'
import type { Lines } from '../system/anonymous-log.ts'
import { uidOf } from '../base/uid.ts'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { STATUS_CODES, type ServerResponse } from 'node:http'
import { AppError } from '../errors/app-error.ts'
import { apiErrors } from './codes.ts'
import { seeDisk } from '../errors/advice.ts'
import { generalErrors } from '../errors/codes.ts'
import type { ErrorKind } from '../errors/define-errors.ts'
import { isUnwritable } from '../store/unwritable.ts'
import type { Peer } from './connection/peer.ts'
import type { Replies } from './replies.ts'
import type { RouteTable } from './route-table.ts'
import { describeProblem } from './compilers.ts'

const slowMs = 1_000

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Clients send their first request without credentials, to be asked for them: its refusal is no news. */
    asksForCredentials?: boolean
  }
}

/** The fields of a log line for a request and its reply. */
function describeRequest(request: FastifyRequest, reply: FastifyReply) {
  return {
    ref: request.id,
    method: request.method,
    path: pathOf(request),
    status: reply.statusCode,
    durationMs: Math.round(reply.elapsedTime),
    address: request.peer.address,
    ...(request.caller ? { user: request.caller.userName } : {}),
  }
}

/**
 * The pattern of the route, with the parameters that are UUIDs. A query, a path without a route and other parameters are left
 * out, since they may contain something secret.
 */
function pathOf({ routeOptions: { url }, params }: FastifyRequest): string {
  if (url === undefined) return 'unknown'
  const values = params as Readonly<Record<string, unknown>> | null
  return url.replace(/:([A-Za-z]+)/g, (whole, name: string) => uidOf(values?.[name]) ?? whole)
}

/**
 * One line for each request. Changes, refusals and slow requests are `info`, other reads `debug`, so that the journal of a
 * healthy host is quiet. `sendError` logs failures, with their reason, since this hook is not called when the client has
 * disconnected.
 * @param anonymousLog log for the lines of callers without a session
 */
export function addRequestLog(app: FastifyInstance, log: Logger, anonymousLog: Lines): void {
  app.addHook('onResponse', (request, reply, done) => {
    const level = levelOf(request, reply)
    if (level && log.isLevelEnabled(level))
      (request.caller ? log : anonymousLog)[level](describeRequest(request, reply), 'request')
    done()
  })
}

function levelOf(request: FastifyRequest, reply: FastifyReply): 'debug' | 'info' | undefined {
  const status = reply.statusCode
  if (status >= 500) return undefined
  const isRead = request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS'
  // These are summed up once a minute: by the rate limiter, or by the audit record that counts them.
  if (request.isOverLimit || request.isCounted) return 'debug'
  const isFirst =
    request.routeOptions.config.asksForCredentials && request.headers.authorization === undefined
  if (status === 401 && isFirst === true) return 'debug'
  const isRefusal = status === 401 || status === 403 || status === 429
  return !isRead || isRefusal || reply.elapsedTime > slowMs ? 'info' : 'debug'
}

// The errors for Fastify's own refusals, by their status.
const frameworkErrors: Readonly<Record<number, ErrorKind>> = {
  400: generalErrors.BadRequest,
  404: generalErrors.NotFound,
  408: apiErrors.RequestTimeout,
  413: generalErrors.PayloadTooLarge,
  414: apiErrors.UriTooLong,
  415: apiErrors.UnsupportedMediaType,
  431: apiErrors.HeadersTooLarge,
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Code of the error that was sent; empty until then. */
    errorCode: string
  }
}

interface ErrorReplyOptions {
  readonly replies: Replies
  /** Called before the refusal of a request that matches no route is sent; the refusal waits for the promise. */
  readonly onUnrouted: (
    request: FastifyRequest,
    reply: FastifyReply,
    error: AppError,
  ) => Promise<void> | undefined
  /** Log for the lines of callers without a session. */
  readonly anonymousLog?: Lines
}

/**
 * Turns every error that a handler throws into the one error body; a 500 discloses nothing about the daemon.
 * @returns a function that sends the reply for an error that Fastify passes to no error handler
 */
export function addErrorReplies(
  app: FastifyInstance,
  { replies, onUnrouted, anonymousLog = app.log }: ErrorReplyOptions,
): (error: AppError, request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  const refuse: ReturnType<typeof addErrorReplies> = (error, request, reply) => {
    const send = () => sendError(error, request, reply, replies, request.caller ? request.log : anonymousLog)
    const recorded = request.is404 ? onUnrouted(request, reply, error) : undefined
    if (!recorded) return send()
    void recorded
      .catch((failure: unknown) =>
        anonymousLog.error(
          { err: failure, ref: request.id },
          'a refusal could not be recorded in the audit trail',
        ),
      )
      .then(send)
    return reply
  }
  app.decorateRequest('errorCode', '')
  app.setErrorHandler((error: FastifyError, request, reply) => refuse(toAppError(error), request, reply))
  return refuse
}

/** The refusal of a request that matches no route. */
export function noRoute(routes: RouteTable, request: FastifyRequest, reply: FastifyReply): AppError {
  const allowed = routes.methodsOf(request.url)
  if (allowed.length === 0) return new AppError(generalErrors.NotFound, 'there is nothing at this path')
  void reply.header('allow', allowed.join(', '))
  const message = `${request.method} is not possible here; use ${allowed.join(' or ')}`
  return new AppError(apiErrors.MethodNotAllowed, message)
}

// Fastify's own messages quote the path, which may contain something secret.
const ownWords: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'body is not valid JSON, or has the key __proto__ or constructor.prototype',
  FST_ERR_BAD_URL: 'the path cannot be decoded',
  FST_ERR_MAX_PARAM_LENGTH: 'a part of the path is too long',
}

// Fastify's message quotes the sent value, and names no header.
const mediaTypeRefused =
  'the header Content-Type is missing, or names what is not taken here; send application/json, or, for an upload, what the document of the API names'

/** The refusal of a body that is incomplete when its connection ends. */
export const connectionEnded = () =>
  new AppError(generalErrors.BadRequest, 'the connection ended before the body did')

/** The error that a client gets for an error of a handler or of Fastify. */
export function toAppError(error: FastifyError): AppError {
  if (error instanceof AppError) return error
  if (error.validation) {
    const problem = error.validation[0]
    const { field, message } = problem
      ? describeProblem(problem, error.validationContext ?? 'body')
      : { field: 'body', message: 'body is not valid' }
    return new AppError(generalErrors.BadRequest, message, { details: { field } })
  }
  const kind = frameworkErrors[error.statusCode ?? 500]
  // Plain errors of a handler have no code, whatever the type says.
  const given = error.code as string | undefined
  if (kind === apiErrors.UnsupportedMediaType && given?.startsWith('FST_'))
    return new AppError(kind, mediaTypeRefused, { details: { field: 'Content-Type' } })
  if (kind && given?.startsWith('FST_')) return new AppError(kind, ownWords[given] ?? error.message)
  if (error instanceof SyntaxError && error.statusCode === 400)
    return new AppError(generalErrors.BadRequest, 'body is not valid JSON')
  if (isUnwritable(error))
    return new AppError(
      generalErrors.InsufficientStorage,
      `nothing was changed: the database cannot be written; ${seeDisk}`,
      { cause: error },
    )
  return new AppError(generalErrors.Internal, 'the daemon failed; find the journal line by the reference', {
    cause: error,
  })
}

/** Sends the error body. A failure of the daemon is logged here, with the fields of the request log. */
function sendError(
  error: AppError,
  request: FastifyRequest,
  reply: FastifyReply,
  replies: Replies,
  lines: Lines,
): FastifyReply {
  void reply.code(error.status)
  request.errorCode = error.code
  if (error.status >= 500 && hasOwnRecord(request)) {
    const { code, message, cause } = error
    const described = { ...describeRequest(request, reply), code }
    // With its stack where the daemon is at fault; one line for what an operator can repair.
    if (error.status === 500) lines.error({ ...described, err: cause ?? error }, 'request failed')
    else lines.warn({ ...described, reason: message, ...(cause ? { err: cause } : {}) }, 'request failed')
  }
  if (error.retryAfterSec !== undefined) void reply.header('retry-after', String(error.retryAfterSec))
  return reply
    .type(replies.errorType)
    .serializer((body: unknown) => JSON.stringify(body))
    .send(replies.errorBody(error, request.id))
}

// For a path that cannot be decoded, Fastify passes a request without its decorators.
const hasOwnRecord = (request: Partial<Pick<FastifyRequest, 'hasOwnRecord'>>) =>
  request.hasOwnRecord?.() ?? true

const parserErrors: Readonly<Record<string, ErrorKind>> = {
  HPE_HEADER_OVERFLOW: apiErrors.HeadersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: apiErrors.RequestTimeout,
}

interface ParserErrorOptions {
  readonly lines: Lines
  readonly replies: Replies
  readonly peerOf: (socket: Socket) => Peer
  /** The first reply on a socket that has not ended. */
  readonly replyOn: (socket: Socket) => ServerResponse | undefined
}

/** Replies to bytes that are not HTTP with the same error body, then closes the connection. */
export function createParserErrorReply({ lines, replies, peerOf, replyOn }: ParserErrorOptions) {
  const { headers, errorType, errorBody } = replies
  const fixed = Object.entries({ ...headers, 'Content-Type': errorType })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  // Sockets whose error waits for earlier replies to end; Node reports the error again with every chunk that follows.
  const waiting = new WeakSet<Socket>()

  return function answer(error: Error & { code?: string }, socket: Socket): void {
    if (waiting.has(socket)) return
    const reply = replyOn(socket)
    // The bytes of this reply would become a part of the one that is being written.
    const isWriting = reply !== undefined && reply.headersSent && !reply.writableEnded
    if (error.code === 'ECONNRESET' || !socket.writable || isWriting) {
      socket.destroy(error)
      return
    }
    // They would also be read as the reply to an earlier request, which has to be sent first.
    if (reply?.req.complete === true) {
      waiting.add(socket)
      reply.once('close', () => {
        waiting.delete(socket)
        answer(error, socket)
      })
      return
    }
    const kind = parserErrors[error.code ?? ''] ?? generalErrors.BadRequest
    const { status } = kind
    const ref = randomUUID()
    // Not the error itself, which contains the bytes of the client.
    const { address } = peerOf(socket)
    lines.debug({ ref, status, address, reason: error.code }, 'request could not be read')
    const body = JSON.stringify(errorBody(new AppError(kind, 'the request could not be read as HTTP'), ref))
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fixed}` +
        `X-Request-Id: ${ref}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
  }
}
