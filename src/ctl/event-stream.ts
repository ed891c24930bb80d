import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLineSplitter } from '../base/lines.ts'
import { notLoggedIn, keepSession, type Context } from './client.ts'
import { Failure } from './exit-codes.ts'
import { oneLine } from './layout.ts'
import { foreignReply, readReply, requireFields, toFailure, type Reply } from './reply.ts'

const firstPauseMs = 500
const longestPauseMs = 15_000

interface EventStreamOptions<T> {
  /** Path of the API. */
  readonly path: string
  /** Reads the data of an event, JSON. @throws Failure */
  readonly read: (data: unknown) => T
  /** Whether the host has answered before, so that it is worth to try again from the beginning on. */
  readonly isKnown?: boolean
  /** Takes the type of each message that is no event: of a state that has changed, where the path asks for states. */
  readonly onState?: (type: string) => void
}

/**
 * Reads server-sent events for as long as the caller wants them; begins again after the last event when the connection breaks or the
 * daemon stops. The session is kept.
 * @throws Failure where the first connection fails, or the session has ended
 */
export async function* readEventStream<T>(
  { client, output, target }: Pick<Context, 'client' | 'output' | 'target'>,
  { path, read, isKnown = false, onState }: EventStreamOptions<T>,
): AsyncGenerator<T> {
  const endSession = keepSession(client)
  let last: string | undefined
  let hasConnected = isKnown
  let pauseMs = 0
  try {
    for (;;) {
      try {
        const message = await client.open({
          method: 'GET',
          path,
          headers: { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) },
        })
        if (message.statusCode !== 200) throw refusal(await readReply(message))
        if (message.headers['content-type']?.startsWith('text/event-stream') !== true)
          throw foreignReply('it is not a stream of events')
        hasConnected = true
        for await (const { id, type, data } of parseStream(message)) {
          if (type === 'end') throwIfOver(data)
          else if (onState && type !== 'message') onState(type)
          else {
            // Only now: an event that could not be read is asked for again.
            yield read(parse(data))
            last = id ?? last
            pauseMs = 0
          }
        }
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        if (error.exitName === 'notLoggedIn') throw notLoggedIn(target, error)
        if (!hasConnected || error.exitName !== 'unreachable') throw error
        if (pauseMs === 0) output.note(`${error.message.split('\n')[0] ?? ''}; trying again`)
      }
      pauseMs = Math.min(longestPauseMs, pauseMs === 0 ? firstPauseMs : 2 * pauseMs)
      await sleep(pauseMs)
    }
  } finally {
    endSession()
  }
}

/** A daemon that starts, stops or has too much to do answers later. */
function refusal(reply: Reply): Failure {
  const failure = toFailure(reply)
  return [429, 503].includes(reply.status) ? new Failure('unreachable', failure.message) : failure
}

/** The stream ends since the daemon stops, or since the session has ended. */
function throwIfOver(data: string): void {
  const { code, message } = requireFields<{ code: string; message: string }>(parse(data), ['code', 'message'])
  if (code !== 'NotReady')
    throw new Failure(code === 'Unauthenticated' ? 'notLoggedIn' : 'failed', oneLine(message))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw foreignReply('an event is not JSON', error)
  }
}

interface Sent {
  readonly id: string | undefined
  readonly type: string
  readonly data: string
}

/** Parses server-sent events, HTML standard 9.2.6. An event that the end of the connection cuts off is not one. */
async function* parseStream(message: IncomingMessage): AsyncGenerator<Sent> {
  const found: Sent[] = []
  let fields: Record<string, string> = {}
  const splitter = createLineSplitter((text) => {
    const line = text.replace(/\r$/, '')
    if (line === '') {
      const { id, event = 'message', data } = fields
      if (data !== undefined) found.push({ id, type: event, data })
      fields = {}
      return
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    fields[name] = name === 'data' && fields.data !== undefined ? `${fields.data}\n${value}` : value
  })
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      splitter.add(chunk)
      yield* found.splice(0)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('unreachable', `the connection broke: ${(error as Error).message}`, { cause: error })
  } finally {
    message.destroy()
  }
}
