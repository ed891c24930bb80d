import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import type { SupportSource } from '../room.ts'

// Time limit of one request. A daemon that hangs costs this much time for each reply of the archive.
const answerMs = 10_000
// Far above the size of every reply in the archive.
const answerLimitBytes = 16_777_216

/**
 * Reads the body of a reply of the daemon over its local socket, as root.
 * @throws Error where the daemon does not answer, or answers with another status than 200 (or 404, where that is expected) or with more
 *   than 16 MiB
 */
export async function askDaemon(
  socketPath: string,
  path: string,
  { timeoutMs = answerMs, mayBeAbsent = false }: Pick<SupportSource, 'timeoutMs' | 'mayBeAbsent'> = {},
): Promise<string> {
  const question = request({ socketPath, path, signal: AbortSignal.timeout(timeoutMs) }).end()
  const [reply] = (await once(question, 'response')) as [IncomingMessage]
  const bytes = createGrowingBuffer(answerLimitBytes)
  for await (const chunk of reply as AsyncIterable<Buffer>)
    if (!bytes.add(chunk)) throw new Error(`the reply is larger than ${answerLimitBytes} bytes`)
  const body = bytes.bytes().toString()
  if (reply.statusCode !== 200 && !(mayBeAbsent && reply.statusCode === 404))
    throw new Error(`the daemon answered with status ${reply.statusCode ?? 0}: ${body.slice(0, 500)}`)
  return body
}
