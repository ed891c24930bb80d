import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { createGrowingBuffer } from '../base/growing-buffer.ts'

// A daemon that hangs answers none of the questions, and each waits for so long.
const answerMs = 10_000
// Far above every reply that the archive holds.
const answerLimitBytes = 16_777_216

/**
 * The body of a reply of the daemon, asked over its local socket, as root.
 * @throws Error when it does not answer, with something else than 200, or with more than 16 MiB
 */
export async function askDaemon(socketPath: string, path: string, timeoutMs = answerMs): Promise<string> {
  const question = request({ socketPath, path, signal: AbortSignal.timeout(timeoutMs) }).end()
  const [reply] = (await once(question, 'response')) as [IncomingMessage]
  const bytes = createGrowingBuffer(answerLimitBytes)
  for await (const chunk of reply as AsyncIterable<Buffer>)
    if (!bytes.add(chunk)) throw new Error(`its answer is larger than ${answerLimitBytes} bytes`)
  const body = bytes.bytes().toString()
  if (reply.statusCode !== 200)
    throw new Error(`the daemon answered with status ${reply.statusCode ?? 0}: ${body.slice(0, 500)}`)
  return body
}
