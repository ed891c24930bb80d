import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { causeOfError, causeOfReply, ForeignReply, NoReply, type Cause, type Way } from './cause.ts'
import { createAgent, type Trust } from './connection.ts'
import { wantedHeader } from './wanted/announcement.ts'

/** A call of the platform. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** The token of this host. */
  readonly token?: string
  /** Parts of the body that no cause shows, though the reply repeats them; nor does it show the token. */
  readonly secrets?: readonly string[]
}

/** What came of a call. */
export interface Answer {
  /** HTTP status; undefined where there was no reply. */
  readonly status?: number
  /** The JSON object of the reply; undefined for none. A list is read and left out, since no call of a host needs one. */
  readonly body?: unknown
  /** Headers of the reply. */
  readonly retryAfter?: string
  readonly date?: string
  /** What the platform wants of the cluster of this host: `Edgehost-Wanted`. */
  readonly wanted?: string
  /** Whether the platform asks for the kubeconfig of the cluster: `Edgehost-Kubeconfig` is false. */
  readonly lacksKubeconfig?: boolean
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

// A platform repeats to a host what the host has told it; JSON of a megabyte can hold up this process for a second.
const longestReply = 262_144
const longestRefusal = 65_536
const mostHints = 16
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
        let isOpen = true
        const fail = (error: Error) => {
          isOpen = false
          reject(error)
        }
        sent.once('response', (reply) => {
          isOpen = false
          resolve(reply)
        })
        sent.once('upgrade', (_, socket) => {
          socket.destroy()
          fail(new ForeignReply('it changes to another protocol'))
        })
        let hints = 0
        sent.on('information', () => {
          if (++hints > mostHints) sent.destroy(new ForeignReply('it sends hints without end'))
        })
        sent.on('error', (error: NodeJS.ErrnoException) => {
          // An error after the reply began is one of the reply too.
          if (!isOpen) return
          isOpen = false
          // The platform may close a kept connection while the next call is sent; all calls may be repeated.
          const isClosed = sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
          if (isClosed && !signal.aborted) open().then(resolve, reject)
          else reject(signal.aborted ? new NoReply('no reply in time') : error)
        })
        // A call ends whatever the other side does.
        sent.once('close', () => {
          if (isOpen) fail(new ForeignReply('it closes the connection without a reply'))
        })
        sent.end(body)
      })
    const reply = await open()
    const { statusCode: status = 0, headers } = reply
    if (status < 200 || status > 599) {
      reply.destroy()
      throw new ForeignReply(`its status is ${status}`)
    }
    if (status >= 300 && status < 400) {
      reply.destroy()
      throw new ForeignReply(`it redirects (status ${status})`)
    }
    const longest = status < 300 ? longestReply + 2 * (body?.length ?? 0) : longestRefusal
    const text = await read(reply, longest).catch((error: unknown) => {
      throw signal.aborted ? new NoReply('no whole reply in time') : error
    })
    const parsed = parse(text, status)
    const cause = causeOfReply(status, parsed, [call.token ?? '', ...(call.secrets ?? [])])
    return {
      ...{ status, body: parsed },
      ...(headers['retry-after'] === undefined ? {} : { retryAfter: headers['retry-after'] }),
      ...(headers.date === undefined ? {} : { date: headers.date }),
      ...(typeof headers[wantedHeader] === 'string' ? { wanted: headers[wantedHeader] } : {}),
      ...(headers['edgehost-kubeconfig'] === '?0' ? { lacksKubeconfig: true } : {}),
      ...(cause ? { cause } : {}),
    }
  }

  return {
    call: (call) => send(call).catch((error: unknown) => ({ cause: causeOfError(error, options, now()) })),
    close: () => agent.destroy(),
  }
}

async function read(reply: IncomingMessage, longest: number): Promise<string> {
  const text = createGrowingBuffer(longest)
  for await (const part of reply as AsyncIterable<Buffer>)
    if (!text.add(part)) throw new ForeignReply(`its reply is longer than ${longest} bytes`)
  return text.bytes().toString()
}

/** A busy server between may answer an error without JSON. */
function parse(text: string, status: number): object | undefined {
  if (text === '') return undefined
  const value = parseJson(text)
  if (typeof value === 'object') return value === null || Array.isArray(value) ? undefined : value
  if (status >= 400) return undefined
  throw new ForeignReply('its reply is not JSON')
}

/** @returns undefined for what is not JSON */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
