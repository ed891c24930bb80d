// Requests to the service API of the program that served the page: one function for all, with the limits of time, the errors by code, the ETags,
// and the clock of the host.
import { signal } from '@preact/signals'

/** The one body of every refusal of the API. */
interface Refusal {
  readonly code: string
  readonly message: string
  readonly ref?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** A request that was refused, or got no answer: then its status is 0 and its code `Unreachable`. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly ref: string | undefined
  readonly details: Readonly<Record<string, unknown>>
  /** Seconds after which another try makes sense, 0 where the host does not say. */
  readonly retryAfterSeconds: number

  constructor(status: number, { code, message, ref, details = {} }: Refusal, retryAfterSeconds = 0) {
    super(message)
    this.status = status
    this.code = code
    this.ref = ref
    this.details = details
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export const unreachable = () => new RequestError(0, { code: 'Unreachable', message: 'There is no answer.' })

/** Whether the host answered the last request; false shows the banner. */
export const isReachable = signal(true)

/** Time of the last answer, by the clock of this device. */
export const lastContact = signal(Date.now())

/** Milliseconds that the clock of the host is ahead of that of this device; its replies have its time to the second. */
export const clockAheadMs = signal(0)

/** Time of the host, milliseconds since 1970. Durations and countdowns use it. */
export const hostNow = (): number => Date.now() + clockAheadMs.value

/** What a session gives to requests. */
export interface Credentials {
  /** The access token; undefined before the login. */
  token(): string | undefined
  /** Makes a new token. @param used the token that was refused @returns whether there is one */
  renew(used?: string): Promise<boolean>
  /** Called where a request was refused with 401 in the end. */
  onRefused(): void
}

let credentials: Credentials = {
  token: () => undefined,
  renew: () => Promise.resolve(false),
  onRefused: () => undefined,
}

/** Gives the requests of this page their session. */
export const useCredentials = (given: Credentials): void => {
  credentials = given
}

export interface RequestOptions {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  /** A form, or a value that is sent as JSON. */
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Default 15 s; 0 is no limit. */
  readonly timeoutMs?: number
}

/** Sends one request without a second try. @throws RequestError where there is no answer, or the reason of the signal */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', headers = {}, body, signal: stop, timeoutMs = 15_000 } = options
  const signals = [...(stop ? [stop] : []), ...(timeoutMs > 0 ? [AbortSignal.timeout(timeoutMs)] : [])]
  const token = credentials.token()
  const isForm = body instanceof FormData
  try {
    const reply = await fetch(path, {
      method,
      // A cookie would go to every port of this name, so to the workloads of the cluster too.
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      headers: {
        ...headers,
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: token }),
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
      ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
    })
    noteContact(reply)
    return reply
  } catch (error) {
    if (stop?.aborted === true) throw error
    isReachable.value = false
    throw unreachable()
  }
}

/**
 * The text of a reply, whose connection may break while it comes: that is no answer.
 * @param stop of its request
 * @throws RequestError, or the reason of the signal
 */
export async function textOf(reply: Response, stop?: AbortSignal): Promise<string> {
  try {
    return await reply.text()
  } catch (error) {
    if (stop?.aborted === true) throw error
    isReachable.value = false
    throw unreachable()
  }
}

/** The JSON of a reply, as `textOf`. */
export async function jsonOf<Body>(reply: Response, stop?: AbortSignal): Promise<Body> {
  const text = await textOf(reply, stop)
  try {
    return JSON.parse(text) as Body
  } catch {
    throw new RequestError(reply.status, { code: 'Internal', message: 'The answer is not JSON.' })
  }
}

function noteContact(reply: Response): void {
  isReachable.value = true
  lastContact.value = Date.now()
  // The header has whole seconds: half of one is the least error.
  const ahead = Date.parse(reply.headers.get('date') ?? '') + 500 - Date.now()
  if (Math.abs(ahead - clockAheadMs.value) > 2_000) clockAheadMs.value = ahead
}

/** The refusal in the text of a reply, which may be that of something between the browser and the host. */
export function refusalIn(text: string, status: number, retryAfterSeconds = 0): RequestError {
  try {
    return new RequestError(status, JSON.parse(text) as Refusal, retryAfterSeconds)
  } catch {
    const message = `The answer has status ${status}.`
    return new RequestError(status, { code: 'Internal', message }, retryAfterSeconds)
  }
}

/** The refusal in a reply. */
export const refusalOf = async (reply: Response): Promise<RequestError> =>
  refusalIn(await reply.text().catch(() => ''), reply.status, Number(reply.headers.get('retry-after')) || 0)

/**
 * Sends a request with the session, which is renewed where its token has run out.
 * @returns a reply with a status of success, or 304
 * @throws RequestError
 */
export async function open(path: string, options: RequestOptions = {}): Promise<Response> {
  const used = credentials.token()
  let reply = await send(path, options)
  if (reply.status === 401 && (await credentials.renew(used))) reply = await send(path, options)
  if (reply.status === 401) credentials.onRefused()
  if (!reply.ok && reply.status !== 304) throw await refusalOf(reply)
  return reply
}

interface MeasuredRequest {
  readonly method: 'POST' | 'PATCH'
  readonly body: Blob | FormData
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Default none: a large body takes its time. */
  readonly timeoutMs?: number
  /** Called while it is sent; `total` is that of the body, with what surrounds a file in a form. */
  onBytes(sent: number, total: number): void
}

/**
 * Sends a large body, as `open` does. By XMLHttpRequest: fetch does not say how much of a body is sent.
 * @returns the text of the reply
 * @throws RequestError; DOMException AbortError where the signal has ended it
 */
export async function sendMeasured(path: string, given: MeasuredRequest, isRetry = false): Promise<string> {
  const { method, body, headers = {}, signal: stop, timeoutMs = 0, onBytes } = given
  stop.throwIfAborted()
  const request = new XMLHttpRequest()
  const token = credentials.token()
  request.open(method, path)
  for (const [name, value] of Object.entries({ authorization: token ?? '', ...headers }))
    request.setRequestHeader(name, value)
  request.timeout = timeoutMs
  request.upload.onprogress = ({ loaded, total }) => onBytes(loaded, total)
  const abort = () => request.abort()
  stop.addEventListener('abort', abort)
  const status = await new Promise<number>((resolve, reject) => {
    request.onload = () => resolve(request.status)
    request.onerror = request.ontimeout = () => reject(unreachable())
    request.onabort = () => reject(new DOMException('ended', 'AbortError'))
    request.send(body)
  }).finally(() => stop.removeEventListener('abort', abort))
  if (status >= 200 && status < 300) return request.responseText
  if (status === 401 && !isRetry && (await credentials.renew(token))) return sendMeasured(path, given, true)
  if (status === 401) credentials.onRefused()
  throw refusalIn(request.responseText, status, Number(request.getResponseHeader('retry-after')) || 0)
}

interface Held {
  readonly etag: string
  readonly body: unknown
}
const held = new Map<string, Held>()

/** Forgets what was read, at a logout. */
export const forgetRead = (): void => held.clear()

/** The header that refuses a change of a path where another one has come since it was read. */
export const ifMatch = (path: string): { readonly headers: Readonly<Record<string, string>> } => {
  const tag = held.get(path)?.etag
  return { headers: tag === undefined ? {} : { 'if-match': tag } }
}

/** @returns the JSON of a path; where nothing has changed, the same object as before. @throws RequestError */
export async function get<Body>(
  path: string,
  options: Pick<RequestOptions, 'signal' | 'timeoutMs'> = {},
): Promise<Body> {
  const before = held.get(path)
  const reply = await open(path, {
    ...options,
    ...(before ? { headers: { 'if-none-match': before.etag } } : {}),
  })
  if (reply.status === 304 && before) return before.body as Body
  const body = await jsonOf<Body>(reply, options.signal)
  const etag = reply.headers.get('etag')
  if (etag === null) held.delete(path)
  else held.set(path, { etag, body })
  return body
}

/**
 * Sends a change.
 * @returns the JSON of the reply; undefined where it has no body
 * @throws RequestError
 */
export async function change<Body = unknown>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  options: Pick<RequestOptions, 'headers' | 'signal' | 'timeoutMs'> = {},
): Promise<Body> {
  const reply = await open(path, { ...options, method, ...(body === undefined ? {} : { body }) })
  const text = await textOf(reply, options.signal)
  return (text === '' ? undefined : JSON.parse(text)) as Body
}
