import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

// A daemon that hangs answers none of the questions, and each waits for so long.
const answerMs = 10_000

/**
 * The body of a reply of the daemon, asked over its local socket, as root.
 * @throws Error when it does not answer, or with something else than 200
 */
export async function askDaemon(socketPath: string, path: string, timeoutMs = answerMs): Promise<string> {
  const question = request({ socketPath, path, signal: AbortSignal.timeout(timeoutMs) }).end()
  const [reply] = (await once(question, 'response')) as [IncomingMessage]
  const body = await text(reply)
  if (reply.statusCode !== 200) throw new Error(`it answers ${reply.statusCode ?? 0}: ${body.slice(0, 500)}`)
  return body
}
