import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request, type Agent } from 'node:https'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { ForeignReply, NoReply, ReplyTooLong } from './failures.ts'

/** A request whose reply is read as a whole. */
export interface Exchange {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** How many bytes the body of a reply with this status may have. */
  readonly longest: (status: number) => number
  /** Called with the size of each part of the body, before it is kept; what it throws ends the reply. */
  readonly onPart?: (bytes: number) => void
  /** Ends it; the reason is then that there was no reply in time. */
  readonly signal: AbortSignal
}

export interface Exchanged {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const mostHints = 16

/**
 * Sends a request and reads its reply. It is sent again where a kept connection was closed meanwhile, so it must be one that may be repeated.
 * A redirect is not followed.
 * @throws ForeignReply, NoReply, and what the connection fails with
 */
export async function exchange(
  agent: Agent,
  { method, url, headers, body, longest, onPart, signal }: Exchange,
): Promise<Exchanged> {
  const open = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(url, {
        ...{ method, agent, signal },
        headers: { ...headers, ...(body ? { 'content-length': body.length } : {}) },
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
        // The server may close a kept connection while the next request is sent.
        const isClosed = sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        if (isClosed && !signal.aborted) open().then(resolve, reject)
        else reject(signal.aborted ? new NoReply('no reply in time') : error)
      })
      // It ends whatever the other side does.
      sent.once('close', () => {
        if (isOpen) fail(new ForeignReply('it closes the connection without a reply'))
      })
      sent.end(body)
    })
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
    throw signal.aborted ? new NoReply('no whole reply in time') : error
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
