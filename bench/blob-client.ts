// Sends a bundle blob by blob over one connection, to the daemon or to the baseline. Prints a BlobClientResult.
import { once } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { Agent, request, type RequestOptions } from 'node:https'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { Blob } from './large-bundle.ts'

export interface BlobClientArgs {
  readonly port: number
  /** PEM file of the certificate that is trusted. */
  readonly certificate: string
  /** Of the daemon; empty for the baseline. */
  readonly token: string
  /** File with the index.json. */
  readonly index: string
  /** JSON file of all blobs, `Blob[]`. */
  readonly blobs: string
}

export interface BlobClientResult {
  /** Sent on the connection after it was opened, header fields included. */
  readonly sentBytes: number
  readonly sentBlobs: number
  /** From the first request to the reply to the last. */
  readonly durationMs: number
}

interface Answer {
  readonly status: number
  readonly body: string
}

const uploads = '/v1/edge-mgmt/content/uploads'
const { port, certificate, token, index, blobs: list } = JSON.parse(process.argv[2] ?? '') as BlobClientArgs
const blobs = JSON.parse(readFileSync(list, 'utf8')) as Blob[]
const agent = new Agent({
  ...{ keepAlive: true, maxSockets: 1, servername: 'localhost' },
  ca: readFileSync(certificate, 'utf8'),
})
let socket: Socket | undefined

await send({ method: 'GET', path: '/v1/ping' })
const sentBefore = socket?.bytesWritten ?? 0
const startedAt = performance.now()
const sentBlobs = await (token === '' ? sendToBaseline() : sendToDaemon())
const durationMs = performance.now() - startedAt
const result: BlobClientResult = {
  ...{ sentBytes: (socket?.bytesWritten ?? 0) - sentBefore, sentBlobs, durationMs },
}
console.log(JSON.stringify(result))
process.exit(0)

async function sendToBaseline(): Promise<number> {
  for (const { sha256, sizeBytes, file } of blobs)
    await send({ method: 'PUT', path: `/blobs/${sha256}`, headers: { 'content-length': sizeBytes } }, file)
  await send({ method: 'POST', path: '/sync', headers: { 'content-length': 0 } })
  return blobs.length
}

async function sendToDaemon(): Promise<number> {
  const files = new Map(blobs.map((blob) => [`sha256:${blob.sha256}`, blob.file]))
  const boundary = '----edgehostd-bench-8f14e45fceea167a'
  const part = (name: string, content: string, more = '') =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`
  const form = [
    part('name', 'bench'),
    part('index', readFileSync(index, 'utf8'), '; filename="index.json"'),
    `--${boundary}--\r\n`,
  ].join('')
  const begun = await send(
    {
      method: 'POST',
      path: uploads,
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    },
    Buffer.from(form),
  )
  const { uid } = JSON.parse(begun.body) as { uid: string }
  let count = 0
  for (;;) {
    const { body } = await send({ method: 'GET', path: `${uploads}/${uid}/missing` })
    const missing = body.split('\n').filter(Boolean)
    if (missing.length === 0) break
    for (const line of missing) {
      const { digest, sizeBytes } = JSON.parse(line) as { digest: string; sizeBytes: number }
      const file = files.get(digest)
      if (file === undefined) throw new Error(`the host asks for ${digest}, which the bundle does not have`)
      const headers = {
        ...{ 'content-type': 'application/octet-stream', 'content-length': sizeBytes },
        'content-range': `bytes 0-${sizeBytes - 1}/${sizeBytes}`,
      }
      await send({ method: 'PATCH', path: `${uploads}/${uid}/blobs/${digest}`, headers }, file)
      count += 1
    }
  }
  await send({ method: 'POST', path: `${uploads}/${uid}/actions/publish`, headers: { 'content-length': 0 } })
  return count
}

/** @param body bytes, or the path of a file. @throws Error when the answer is an error */
async function send(options: RequestOptions, body?: Buffer | string): Promise<Answer> {
  const headers = {
    ...(options.headers as OutgoingHttpHeaders | undefined),
    ...(token === '' ? {} : { authorization: token }),
    ...(Buffer.isBuffer(body) ? { 'content-length': body.length } : {}),
  }
  const sent = request({ ...options, headers, host: '127.0.0.1', port, agent })
  sent.on('socket', (used) => (socket = used))
  const replied = readReply(sent)
  if (typeof body === 'string')
    await Promise.race([replied, pipeline(createReadStream(body, { highWaterMark: 262_144 }), sent)])
  else sent.end(body)
  const answer = await replied
  if (answer.status >= 300)
    throw new Error(`${options.method} ${options.path} answers ${answer.status}: ${answer.body}`)
  return answer
}

async function readReply(sent: ReturnType<typeof request>): Promise<Answer> {
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  let body = ''
  for await (const text of reply.setEncoding('utf8')) body += String(text)
  return { status: reply.statusCode ?? 0, body }
}
