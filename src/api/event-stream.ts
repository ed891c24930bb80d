// `sendEvents` (`api/event-stream.ts`) replies with server-sent events until its source ends. Heartbeats show that the connection has not stalled.
// The stream ends with a last event `end` when the session of the caller ends or loses its role (`request.sessionEnd`), and when the daemon stops
// (`app.stopping`, an option of `createServer`). The source gets the `Last-Event-ID` of the client. A source that replays stored events waits for
// room after each event; a client that does not read loses its connection when more than 1 MiB waits for it. `GET /v1/edge-mgmt/events/stream` uses
// it.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { toAppError } from './errors.ts'
import type { Replies } from './replies.ts'

/** One event of a stream, as the HTML standard has it (section 9.2, server-sent events). */
export interface ServerEvent {
  /** A client that connects again sends the id of the last event it has received. One line. */
  readonly id?: string
  /** Type of the event, one line; the default is `message`. `end` is the last event of a stream that did not end by itself. */
  readonly event?: string
  /** Sent as JSON. */
  readonly data: unknown
}

/** The stream, as its source uses it. */
export interface EventStream {
  /** Unchecked `Last-Event-ID` of the client, the id of the last event it has received; `undefined` on a first connection. */
  readonly lastEventId: string | undefined
  /** Aborted when the stream ends, whatever the reason. */
  readonly signal: AbortSignal
  /**
   * Sends an event; does nothing once the stream has ended.
   * @returns fulfilled when there is room for more. A source of stored events has to wait for it. A source of live events need
   *   not: a client that does not read loses its connection when too much data waits for it.
   */
  send(event: ServerEvent): Promise<void>
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborted when the stop of the app begins. */
    readonly stopping: AbortSignal
    readonly replies: Replies
  }
}

// Bytes of events that wait for the client: above the first the source has to wait, above the second the connection ends.
const roomBytes = 65_536
const limitBytes = 1_048_576
const longestHeartbeatMs = 5_000
const heartbeat = ':\n\n'

/**
 * Replies with the events of `source` until it ends. The stream ends early, with a last event `end` whose data is the error,
 * when the session of the caller ends or loses its role, when the daemon stops, and when `source` fails.
 * While there are no events, comments show that the connection is open.
 * @throws AppError when the session has ended already or the daemon stops
 */
export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  source: (stream: EventStream) => Promise<void>,
): FastifyReply {
  const { sessionEnd } = request
  const { stopping, replies } = request.server
  sessionEnd.throwIfAborted()
  if (stopping.aborted) throw stops()
  // The connection is not used after the stream, so a stop need not wait for another request on it.
  reply.type('text/event-stream').header('cache-control', 'no-store').header('connection', 'close')
  if (request.method === 'HEAD') return reply.send()

  const ended = new AbortController()
  /** Fulfilled when the stream has room for more events. */
  let room: PromiseWithResolvers<void> | undefined
  const haveRoom = () => {
    room?.resolve()
    room = undefined
  }
  const body = new Readable({ highWaterMark: roomBytes, read: haveRoom })
  // Sends the header fields.
  body.push(heartbeat)
  const timer = setInterval(() => {
    // A client that does not read gets no heartbeats: its connection has stalled and has to time out.
    if (body.readableLength + reply.raw.writableLength === 0) body.push(heartbeat)
  }, heartbeatMsOf(request)).unref()

  function send(event: ServerEvent): Promise<void> {
    if (ended.signal.aborted || body.push(textOf(event))) return Promise.resolve()
    if (body.readableLength > limitBytes) reply.raw.destroy()
    room ??= Promise.withResolvers()
    return room.promise
  }

  function end(reason?: AppError): void {
    if (ended.signal.aborted) return
    if (reason) body.push(textOf({ event: 'end', data: replies.errorBody(reason, request.id) }))
    body.push(null)
    settle()
  }

  function settle(): void {
    clearInterval(timer)
    sessionEnd.removeEventListener('abort', onSessionEnd)
    stopping.removeEventListener('abort', onStop)
    ended.abort()
    haveRoom()
  }

  const onSessionEnd = () => end(sessionEnd.reason as AppError)
  const onStop = () => end(stops())
  sessionEnd.addEventListener('abort', onSessionEnd)
  stopping.addEventListener('abort', onStop)
  // Also when the client has gone.
  body.once('close', settle)

  const lastEventId = request.headers['last-event-id']
  async function run(): Promise<void> {
    try {
      await source({
        lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
        signal: ended.signal,
        send,
      })
      end()
    } catch (error) {
      // A source may react to the signal with an error.
      if (ended.signal.aborted) return
      const failure = toAppError(error as FastifyError)
      if (failure.status === 500) request.log.error({ ref: request.id, err: error }, 'an event stream failed')
      end(failure)
    }
  }
  void run()
  return reply.send(body)
}

const stops = () => new AppError(generalErrors.NotReady, 'the daemon stops; connect again')

/** Well below the time after which a stalled connection is closed. */
function heartbeatMsOf({ socket: { timeout = 0 } }: FastifyRequest): number {
  return timeout > 0 ? Math.min(longestHeartbeatMs, timeout / 3) : longestHeartbeatMs
}

function textOf({ id, event, data }: ServerEvent): string {
  const fields = {
    ...(id === undefined ? {} : { id }),
    ...(event === undefined ? {} : { event }),
    data: JSON.stringify(data),
  }
  return `${Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')}\n`
}
