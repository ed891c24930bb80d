import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { causeOfError, causeOfReply, ForeignReply, NoReply, type Cause, type Way } from './cause.ts'
import { createAgent, type Trust } from './connection.ts'

/** A call of the platform. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** The token of this host. */
  readonly token?: string
}

/** What came of a call. */
export interface Answer {
  /** HTTP status; undefined where there was no reply. */
  readonly status?: number
  /** The JSON of the reply; undefined for none. */
  readonly body?: unknown
  /** Headers of the reply. */
  readonly retryAfter?: string
  readonly date?: string
  /** Why it failed; undefined for a success. */
  readonly cause?: Cause
}

export interface PlatformClientOptions extends Way, Trust {
  /** Wall clock, for messages only. */
  readonly now: () => number
  /** For a connection, and for a whole call. */
  readonly timeoutMs?: number
}

/** Outgoing calls of this host. */
export interface PlatformClient {
  /** Never rejects: each failure is a cause. A redirect is not followed. */
  call(call: Call): Promise<Answer>
  /** Closes the connection. */
  close(): void
}

const longestReply = 1_048_576
const defaultTimeoutMs = 20_000

export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const { url, now, timeoutMs = defaultTimeoutMs } = options
  const agent = createAgent(options, options, timeoutMs)

  async function send(call: Call): Promise<Answer> {
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
    const signal = AbortSignal.timeout(timeoutMs)
    const open = () =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const sent = request(new URL(call.path, url), {
          ...{ method: call.method, agent, signal },
          headers: {
            ...{ accept: 'application/json', 'user-agent': 'edgehostd' },
            ...(call.token === undefined ? {} : { authorization: call.token }),
            ...(body ? { 'content-type': 'application/json', 'content-length': body.length } : {}),
          },
        })
        sent.once('response', resolve)
        sent.on('error', (error: NodeJS.ErrnoException) => {
          // The platform may close a kept connection while the next call is sent; all calls may be repeated.
          const isClosed = sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
          if (isClosed && !signal.aborted) open().then(resolve, reject)
          else reject(signal.aborted ? new NoReply('no reply in time') : error)
        })
        sent.end(body)
      })
    const reply = await open()
    const { statusCode: status = 0, headers } = reply
    if (status >= 300 && status < 400) {
      reply.destroy()
      throw new ForeignReply(`it redirects (status ${status})`)
    }
    const text = await read(reply).catch((error: unknown) => {
      throw signal.aborted ? new NoReply('no whole reply in time') : error
    })
    const parsed = parse(text, status)
    const cause = causeOfReply(status, parsed)
    return {
      ...{ status, body: parsed },
      ...(headers['retry-after'] === undefined ? {} : { retryAfter: headers['retry-after'] }),
      ...(headers.date === undefined ? {} : { date: headers.date }),
      ...(cause ? { cause } : {}),
    }
  }

  return {
    call: (call) => send(call).catch((error: unknown) => ({ cause: causeOfError(error, options, now()) })),
    close: () => agent.destroy(),
  }
}

async function read(reply: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of reply as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > longestReply) throw new ForeignReply('its reply is longer than 1 MiB')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** A busy server between may answer an error without JSON. */
function parse(text: string, status: number): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    if (status >= 400) return undefined
    throw new ForeignReply('its reply is not JSON')
  }
}
