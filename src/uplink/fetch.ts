import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { parseJson } from '../base/json.ts'
import { createAgent } from '../outgoing/connection.ts'
import { ForeignReply, NoReply } from '../outgoing/failures.ts'
import { replyTo } from '../outgoing/exchange.ts'
import { causeOfError, causeOfReply, type Cause, createOwnSecrets } from './cause.ts'
import type { PlatformClientOptions } from './client.ts'

/** A request for bytes of any length. */
export interface FetchOrder {
  readonly path: string
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
}

/** A reply whose bytes arrive. */
export interface Fetched {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Throws a cause that `causeOf` explains. To be read to its end, or ended. */
  readonly body: AsyncIterable<Buffer>
}

/** Downloads from the platform, each over a connection of its own: the heartbeats do not wait for them. */
export interface Fetch {
  /**
   * Asks, and hands the reply of status 200 or 206 to the caller. Nothing else is handed on; a redirect is not followed.
   * @param use the connection is closed after it
   * @returns what `use` returns, or why there was no such reply
   */
  fetch<T>(
    order: FetchOrder,
    signal: AbortSignal,
    use: (reply: Fetched) => Promise<T>,
  ): Promise<{ readonly done: T } | FetchFailure>
}

export interface FetchFailure {
  readonly cause: Cause
  /** Undefined where there was no reply. */
  readonly status?: number
  readonly retryAfter?: string
}

export interface FetchOptions extends PlatformClientOptions {
  /** Without a byte for so long the connection is given up. */
  readonly idleMs?: number
}

const longestRefusal = 65_536
const defaultTimeoutMs = 20_000
const defaultIdleMs = 60_000

export function createFetch(options: FetchOptions): Fetch {
  const { url, now, timeoutMs = defaultTimeoutMs, idleMs = defaultIdleMs } = options
  const { ownSecrets = createOwnSecrets() } = options

  async function send<T>(
    { path, token, headers }: FetchOrder,
    signal: AbortSignal,
    use: (reply: Fetched) => Promise<T>,
  ): Promise<{ readonly done: T } | FetchFailure> {
    ownSecrets.add('sessionToken', token)
    const agent = createAgent(options, options, timeoutMs)
    const ended = new AbortController()
    const whole = AbortSignal.any([signal, ended.signal])
    const timer = setTimeout(() => ended.abort(new NoReply('no reply in time')), timeoutMs)
    try {
      whole.throwIfAborted()
      const sent = request(new URL(path, url), {
        method: 'GET',
        agent,
        signal: whole,
        headers: {
          'user-agent': 'edgehostd',
          'accept-encoding': 'identity',
          authorization: token,
          ...headers,
        },
      })
      sent.end()
      const reply = await replyTo(sent, whole).catch((error: unknown) => {
        throw reasonOf(whole, error as Error)
      })
      clearTimeout(timer)
      const { statusCode: status = 0 } = reply
      if (status === 200 || status === 206)
        return { done: await use({ status, headers: reply.headers, body: bytesOf(reply, whole) }) }
      return await refusalOf(reply, status)
    } finally {
      clearTimeout(timer)
      agent.destroy()
      ended.abort(new Error('the reply is not wanted any more'))
    }
  }

  async function* bytesOf(reply: IncomingMessage, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const late = () => reply.destroy(new NoReply('no more bytes in time'))
    let timer = setTimeout(late, idleMs)
    try {
      for await (const piece of reply as AsyncIterable<Buffer>) {
        // The caller's own time does not count.
        clearTimeout(timer)
        yield piece
        timer = setTimeout(late, idleMs)
      }
    } catch (error) {
      throw reasonOf(signal, error as Error)
    } finally {
      clearTimeout(timer)
    }
  }

  async function refusalOf(reply: IncomingMessage, status: number): Promise<FetchFailure> {
    if (status < 200 || status > 599) throw new ForeignReply(`its status is ${status}`)
    if (status >= 300 && status < 400) throw new ForeignReply(`it redirects (status ${status})`)
    if (status < 300) throw new ForeignReply(`its status is ${status}, and nothing comes`)
    const pieces: Buffer[] = []
    let length = 0
    const late = setTimeout(() => reply.destroy(new NoReply('no whole reply in time')), timeoutMs)
    try {
      for await (const piece of reply as AsyncIterable<Buffer>) {
        length += piece.length
        if (length > longestRefusal) break
        pieces.push(piece)
      }
    } finally {
      clearTimeout(late)
    }
    const retryAfter = reply.headers['retry-after']
    return {
      cause: causeOfReply(status, parseJson(Buffer.concat(pieces).toString()), ownSecrets.all()) ?? notWanted,
      status,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    }
  }

  return {
    fetch: (order, signal, use) =>
      send(order, signal, use).catch((error: unknown) => {
        signal.throwIfAborted()
        // A fault of this host, as a full disk, is the caller's.
        if (error instanceof OwnFailure) throw error.cause
        return { cause: causeOfError(error, options, now()) }
      }),
  }
}

/** Wraps an error of the one who reads the bytes, so that it is not taken for one of the connection. */
export class OwnFailure extends Error {
  override readonly name = 'OwnFailure'

  constructor(cause: unknown) {
    super('what was received cannot be used', { cause })
  }
}

const notWanted: Cause = { kind: 'platform', message: 'the platform refused the download' }

const reasonOf = (signal: AbortSignal, error: Error): Error =>
  signal.aborted && signal.reason instanceof Error ? signal.reason : error
