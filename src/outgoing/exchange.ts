import type { ClientRequest, IncomingMessage, IncomingHttpHeaders } from 'node:http'
import { ForeignReply, NoReply, ReplyTooLong } from './failures.ts'
import { request, type Agent } from 'node:https'
import { createGrowingBuffer } from '../base/growing-buffer.ts'

const mostHints = 16

/**
 * Waits for the reply to a request, of which the body is not read yet.
 * @param signal ends the wait at once: Node ends a request only when it has its connection, which may be long in coming
 * @throws ForeignReply, the reason of the signal, and errors of the connection
 */
export function replyTo(sent: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const end = () => reject(signal.reason as Error)
  signal.addEventListener('abort', end)
  sent.once('response', resolve)
  sent.once('upgrade', (_, socket) => {
    socket.destroy()
    reject(new ForeignReply('it changes to another protocol'))
  })
  let hints = 0
  sent.on('information', () => {
    if (++hints > mostHints) sent.destroy(new ForeignReply('it sends hints without end'))
  })
  // Also later errors, which are errors of the reply too.
  sent.on('error', reject)
  // It ends whatever the other side does.
  sent.once('close', () => reject(new ForeignReply('it closes the connection without a reply')))
  return promise.finally(() => signal.removeEventListener('abort', end))
}

/** A request whose reply is read as a whole. */
interface Exchange {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Most bytes of the body of a reply with this status. */
  readonly longest: (status: number) => number
  /** Called with the size of each part of the body, before it is kept; an error that it throws ends the reply. */
  readonly onPart?: (bytes: number) => void
  /** Ends it at once, also while the connection is made; the reason is then that there was no reply in time. */
  readonly signal: AbortSignal
}

interface Exchanged {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/**
 * Sends a request and reads its reply. It is sent again where a kept connection was closed meanwhile, so it must be one that may be repeated.
 * A redirect is not followed.
 * @throws ForeignReply, NoReply, and errors of the connection
 */
export async function exchange(
  agent: Agent,
  { method, url, headers, body, longest, onPart, signal }: Exchange,
): Promise<Exchanged> {
  const isOver = () => signal.aborted
  const open = async (): Promise<IncomingMessage> => {
    // Else there would be a connection for it.
    if (isOver()) throw new NoReply('no reply in time')
    const sent = request(url, {
      method,
      agent,
      signal,
      headers: { ...headers, ...(body ? { 'content-length': body.length } : {}) },
    })
    sent.end(body)
    try {
      return await replyTo(sent, signal)
    } catch (error) {
      if (isOver()) throw new NoReply('no reply in time', { cause: error })
      // The server may close a kept connection while the next request is sent.
      const { code = '' } = error as NodeJS.ErrnoException
      if (sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(code)) return open()
      throw error
    }
  }
  const reply = await open()
  const { statusCode: status = 0 } = reply
  if (status < 200 || status > 599) {
    reply.destroy()
    throw new ForeignReply(`its status is ${status}`)
  }
  if (status >= 300 && status < 400) {
    reply.destroy()
    throw new ForeignReply(`it redirects (status ${status})`)
  }
  const text = await read(reply, longest(status), onPart).catch((error: unknown) => {
    throw isOver() ? new NoReply('no whole reply in time') : error
  })
  return { status, headers: reply.headers, text }
}

async function read(reply: IncomingMessage, longest: number, onPart: Exchange['onPart']): Promise<string> {
  const text = createGrowingBuffer(longest)
  for await (const part of reply as AsyncIterable<Buffer>) {
    onPart?.(part.length)
    if (!text.add(part)) throw new ReplyTooLong(longest)
  }
  return text.bytes().toString()
}
