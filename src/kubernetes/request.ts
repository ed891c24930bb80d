import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { KubernetesError } from './client.ts'
import type { Ask, Connection } from './connection.ts'
import { isRecord, parseExactJson, parseJson } from '../base/json.ts'

export interface Requests {
  /** @returns the body of a successful reply. @throws KubernetesError */
  read(question: Question): Promise<string>
  /** @returns the body of a successful reply as parsed JSON. @throws KubernetesError */
  ask(question: Question): Promise<unknown>
  /** @returns a successful reply whose body is read by the caller. @throws KubernetesError */
  open(question: Question): Promise<IncomingMessage>
  /** Makes a KubernetesError of an error of a request, or of reading its body. */
  explain(error: unknown, signal: AbortSignal | undefined): KubernetesError
}

export interface Question extends Omit<Ask, 'signal'> {
  /** Until the whole reply is there; for `open`, until its body begins. */
  readonly timeoutMs?: number
  /** Whether 429 is an error at once, since it says more than that the API server is busy. */
  readonly isRefusedWhenPutOff?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface RequestsOptions {
  readonly connection: Connection
  readonly timeoutMs?: number
  readonly maximumBytes?: number
}

// A page of 250 pods has 1 to 2 MB.
const replyBytes = 32 * 1024 * 1024
const errorBytes = 64 * 1024
const mostPauseSeconds = 10

/** Requests with a time limit and a bounded reply. A request that the API server puts off (429) is repeated within its time. */
export function createRequests(options: RequestsOptions): Requests {
  const { connection, timeoutMs: usualMs = 30_000, maximumBytes = replyBytes } = options
  const server = () => connection.server() ?? 'the API server'

  function explain(error: unknown, signal: AbortSignal | undefined): KubernetesError {
    if (error instanceof KubernetesError) return error
    if (signal?.aborted) return new KubernetesError(0, 'Aborted', `the request to ${server()} was ended`)
    const { name, message, code } = error as NodeJS.ErrnoException
    if (name === 'TimeoutError')
      return new KubernetesError(0, 'Timeout', `${server()} does not reply in time`)
    // Of an address with two families Node tries both, and its error has no text.
    const cause = [message, code].find((text) => text !== undefined && text !== '') ?? name
    return new KubernetesError(0, 'Unreachable', `${server()} cannot be reached: ${cause}`)
  }

  async function send(question: Question, signal: AbortSignal): Promise<IncomingMessage> {
    for (;;) {
      const reply = await connection.send({ ...question, signal })
      const { statusCode: status = 0 } = reply
      if (status >= 200 && status <= 299) return reply
      const body = await readBody(reply, errorBytes).catch(() => '')
      signal.throwIfAborted()
      const pause = Number(reply.headers['retry-after'])
      const isPutOff = status === 429 && pause <= mostPauseSeconds && question.isRefusedWhenPutOff !== true
      if (!isPutOff) throw refusal(status, body)
      await sleep(Math.max(1, pause) * 1_000, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }

  /** Runs work with a signal that the caller aborts, also later, and the time limit until the work is done. */
  async function within<Result>(
    { timeoutMs = usualMs, signal }: Question,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new DOMException('no reply', 'TimeoutError')), timeoutMs)
    const either = signal === undefined ? late.signal : AbortSignal.any([late.signal, signal])
    try {
      either.throwIfAborted()
      return await orAborted(work(either), either)
    } catch (error) {
      throw explain(either.aborted ? either.reason : error, signal)
    } finally {
      clearTimeout(timer)
    }
  }

  const read: Requests['read'] = (question) =>
    within(question, async (signal) => readBody(await send(question, signal), maximumBytes))

  return {
    read,
    ask: async (question) => parse(await read(question), question),
    open: (question) => within(question, (signal) => send(question, signal)),
    explain,
  }
}

/** Ends with the signal, also where the work does not: a request that waits for a free connection is not ended by its signal. */
async function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

async function readBody(reply: IncomingMessage, maximumBytes: number): Promise<string> {
  const body = createGrowingBuffer(maximumBytes)
  for await (const chunk of reply)
    if (!body.add(chunk as Buffer))
      throw new KubernetesError(
        reply.statusCode ?? 0,
        'TooLarge',
        `a reply has more than ${maximumBytes} bytes`,
      )
  return body.bytes().toString()
}

function parse(text: string, { method, path }: Question): unknown {
  const reply = parseJson(text, parseExactJson)
  if (reply === undefined)
    throw new KubernetesError(200, 'InvalidReply', `the reply to ${method} ${path} is not JSON`)
  return reply
}

/** Whether there is nothing under the path of a request. */
export const isMissing = (error: unknown): boolean => error instanceof KubernetesError && error.status === 404

/** @returns undefined where there is nothing under the path of the request */
export async function unlessMissing<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work()
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** The error that a reply without success, or an event of the type ERROR, stands for. @param body a Status, or any text */
export function refusal(status: number, body: unknown): KubernetesError {
  const said = typeof body === 'string' ? parseJson(body) : body
  if (!isRecord(said) || typeof said.message !== 'string') {
    const text = typeof body === 'string' ? body.trim().slice(0, 200) : ''
    return new KubernetesError(status, 'Unknown', `the API server replied ${status}${text && `: ${text}`}`)
  }
  const reason = typeof said.reason === 'string' && said.reason !== '' ? said.reason : 'Unknown'
  const causes = isRecord(said.details) && Array.isArray(said.details.causes) ? said.details.causes : []
  const reasons = causes.map((cause: unknown) => (isRecord(cause) ? cause.reason : undefined))
  return new KubernetesError(
    typeof said.code === 'number' ? said.code : status,
    reason,
    status === 401
      ? `the API server refuses the certificate of the kubeconfig: ${said.message}`
      : said.message,
    reasons.filter((each) => typeof each === 'string'),
  )
}
