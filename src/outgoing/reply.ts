import type { ClientRequest, IncomingMessage } from 'node:http'
import { ForeignReply } from './failures.ts'

const mostHints = 16

/**
 * Waits for the reply to a request, of which the body is not read yet.
 * @param signal ends the wait at once: Node ends a request only when it has its connection, which may be long in coming
 * @throws ForeignReply, the reason of the signal, and what the connection fails with
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
  // Also later ones, which are those of the reply too.
  sent.on('error', reject)
  // It ends whatever the other side does.
  sent.once('close', () => reject(new ForeignReply('it closes the connection without a reply')))
  return promise.finally(() => signal.removeEventListener('abort', end))
}
