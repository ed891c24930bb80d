import { parseJson } from '../base/json.ts'
import { createAgent, type Trust, type Way } from '../outgoing/connection.ts'
import { exchange } from '../outgoing/exchange.ts'
import { ForeignReply } from '../outgoing/failures.ts'
import { causeOfError, causeOfReply, type Cause, createOwnSecrets, type OwnSecrets } from './cause.ts'
import { wantedHeader } from './desired/desired-store.ts'

const firstMs = 1_000
const minuteMs = 60_000
// A platform that asks for more is asked again after this long, since the header may be wrong.
const longestRetryAfterMs = 3_600_000

/**
 * Back-off after failures in a row: a second, doubled up to a minute, the time between two heartbeats, half of it by chance, so that hosts
 * that lost the platform at once do not come back at once. `Retry-After` is obeyed, up to an hour.
 * @param failures at least 1
 * @param random 0 up to 1
 * @param retryAfter the header, if there was one: seconds
 * @param longestMs limit, where the wait may grow further
 * @returns milliseconds
 */
export function waitAfter(
  failures: number,
  random: number,
  retryAfter?: string,
  longestMs = minuteMs,
): number {
  const grown = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 20))
  const own = grown / 2 + (grown / 2) * random
  if (retryAfter === undefined || !/^\d{1,9}$/.test(retryAfter)) return own
  const asked = Math.min(longestRetryAfterMs, Number(retryAfter) * 1_000)
  return Math.max(own, asked + firstMs * random)
}

/** A call of the platform. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** The token of this host. */
  readonly token?: string
  /** Parts of the body that the cause does not show, though the reply repeats them; nor does any cause show the token. */
  readonly secrets?: readonly string[]
}

/** Result of a call. */
export interface Answer {
  /** HTTP status; undefined where there was no reply. */
  readonly status?: number
  /** The JSON object of the reply; undefined for none. A list is read and left out, since no call of a host needs one. */
  readonly body?: unknown
  /** Headers of the reply. */
  readonly retryAfter?: string
  readonly date?: string
  /** Desired cluster of this host: `Edgehost-Wanted`. */
  readonly wanted?: string
  /** Whether the platform asks for the kubeconfig of the cluster: `Edgehost-Kubeconfig` is false. */
  readonly lacksKubeconfig?: boolean
  /** Why it failed; undefined for a success. */
  readonly cause?: Cause
}

export interface PlatformClientOptions extends Way, Trust {
  /** Wall clock, for messages only. */
  readonly now: () => number
  /** No cause shows them; the tokens of the calls are added. */
  readonly ownSecrets?: OwnSecrets
  /** For a connection, and for a whole call. */
  readonly timeoutMs?: number
}

/** Outgoing calls of this host. */
export interface PlatformClient {
  /** Never rejects: each failure is a cause. A redirect is not followed. */
  call(call: Call): Promise<Answer>
  /** Ends the calls and the connection; the next call makes another one. Absent where there are no connections. */
  renew?(): void
  /** Ends the calls at once, closes the connection and makes no other one. */
  close(): void
}

// A platform repeats to a host what the host has sent; JSON of a megabyte can hold up this process for a second.
const longestReply = 262_144
const longestRefusal = 65_536
const defaultTimeoutMs = 20_000

export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const { url, now, ownSecrets = createOwnSecrets(), timeoutMs = defaultTimeoutMs } = options
  let agent = createAgent(options, options, timeoutMs)
  const closed = new AbortController()

  async function send(call: Call): Promise<Answer> {
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body))
    if (call.token !== undefined) ownSecrets.add('sessionToken', call.token)
    const signal = AbortSignal.any([closed.signal, AbortSignal.timeout(timeoutMs)])
    const { status, headers, text } = await exchange(agent, {
      method: call.method,
      url: new URL(call.path, url),
      signal,
      headers: {
        accept: 'application/json',
        'user-agent': 'edgehostd',
        ...(call.token === undefined ? {} : { authorization: call.token }),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body } : {}),
      longest: (of) => (of < 300 ? longestReply + 2 * (body?.length ?? 0) : longestRefusal),
    })
    const parsed = parse(text, status)
    const cause = causeOfReply(status, parsed, [...ownSecrets.all(), ...(call.secrets ?? [])])
    return {
      status,
      body: parsed,
      ...(headers['retry-after'] === undefined ? {} : { retryAfter: headers['retry-after'] }),
      ...(headers.date === undefined ? {} : { date: headers.date }),
      ...(typeof headers[wantedHeader] === 'string' ? { wanted: headers[wantedHeader] } : {}),
      ...(headers['edgehost-kubeconfig'] === '?0' ? { lacksKubeconfig: true } : {}),
      ...(cause ? { cause } : {}),
    }
  }

  return {
    call: (call) => send(call).catch((error: unknown) => ({ cause: causeOfError(error, options, now()) })),
    renew() {
      if (closed.signal.aborted) return
      const former = agent
      agent = createAgent(options, options, timeoutMs)
      former.destroy()
    },
    close() {
      closed.abort()
      agent.destroy()
    },
  }
}

/** A busy server between may answer an error without JSON. */
function parse(text: string, status: number): object | undefined {
  if (text === '') return undefined
  const value = parseJson(text)
  if (typeof value === 'object') return value === null || Array.isArray(value) ? undefined : value
  if (status >= 400) return undefined
  throw new ForeignReply('its reply is not JSON')
}
