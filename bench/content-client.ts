// The clients of content and definitions, a process of its own: `file` sends a file in a form, as curl -F does, or as the body; `blobs` sends a
// bundle blob by blob, to the daemon or to the baseline. Either over one connection that is open already; the result is printed as JSON.
import { once } from 'node:events'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { Agent, request, type RequestOptions } from 'node:https'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { Blob } from './large-files.ts'

interface Connecting {
  readonly port: number
  /** PEM file of the certificate that is trusted. */
  readonly certificate: string
  /** Of the daemon; empty for the baseline. */
  readonly token: string
}

export interface UploadArgs extends Connecting {
  readonly path: string
  readonly file: string
  /** Whether the file alone is the body, without a form. */
  readonly isBare?: boolean
}

export interface UploadResult {
  readonly status: number
  readonly body: string
  /** Of the whole body. */
  readonly bytes: number
  /** From the first byte of the request to the end of the reply. */
  readonly durationMs: number
}

interface BlobArgs extends Connecting {
  /** File with the index.json. */
  readonly index: string
  /** JSON file of all blobs, `Blob[]`. */
  readonly blobs: string
}

interface BlobResult {
  /** Sent on the connection after it was opened, header fields included. */
  readonly sentBytes: number
  readonly sentBlobs: number
  /** From the first request to the reply to the last. */
  readonly durationMs: number
}

/** What each client is told, and what it prints. */
export interface Sendings {
  readonly file: { readonly args: UploadArgs; readonly result: UploadResult }
  readonly blobs: { readonly args: BlobArgs; readonly result: BlobResult }
}

const [kind, text = ''] = process.argv.slice(2)
const args = JSON.parse(text) as UploadArgs & BlobArgs
const { port, certificate, token } = args
const agent = new Agent({
  keepAlive: true,
  maxSockets: 1,
  servername: 'localhost',
  ca: readFileSync(certificate, 'utf8'),
})
let socket: Socket | undefined
const boundary = '----edgehostd-bench-8f14e45fceea167a'
const multipart = `multipart/form-data; boundary=${boundary}`
const uploads = '/v1/edge-mgmt/content/uploads'

await ask({ method: 'GET', path: '/v1/ping' })
const result = await (kind === 'file' ? sendFile(args) : sendBundle(args))
console.log(JSON.stringify(result))
process.exit(0)

async function sendFile({ path, file, isBare = false }: UploadArgs): Promise<UploadResult> {
  const disposition = 'Content-Disposition: form-data; name="uploadFile"; filename="bench.tar.zst"'
  const [head, tail] = isBare
    ? ['', '']
    : [`--${boundary}\r\n${disposition}\r\n\r\n`, `\r\n--${boundary}--\r\n`]
  const bytes = head.length + statSync(file).size + tail.length
  const startedAt = performance.now()
  const headers = { 'content-type': multipart, 'content-length': bytes }
  const replied = await send({ method: 'POST', path, headers }, file, { head, tail })
  return { ...replied, bytes, durationMs: performance.now() - startedAt }
}

async function sendBundle({ index, blobs: list }: BlobArgs): Promise<BlobResult> {
  const blobs = JSON.parse(readFileSync(list, 'utf8')) as Blob[]
  const sentBefore = socket?.bytesWritten ?? 0
  const startedAt = performance.now()
  const sentBlobs = await (token === '' ? sendToBaseline(blobs) : sendToDaemon(blobs, index))
  const durationMs = performance.now() - startedAt
  return { sentBytes: (socket?.bytesWritten ?? 0) - sentBefore, sentBlobs, durationMs }
}

async function sendToBaseline(blobs: readonly Blob[]): Promise<number> {
  for (const { sha256, sizeBytes, file } of blobs)
    await ask({ method: 'PUT', path: `/blobs/${sha256}`, headers: { 'content-length': sizeBytes } }, file)
  await ask({ method: 'POST', path: '/sync', headers: { 'content-length': 0 } })
  return blobs.length
}

async function sendToDaemon(blobs: readonly Blob[], index: string): Promise<number> {
  const files = new Map(blobs.map((blob) => [`sha256:${blob.sha256}`, blob.file]))
  const part = (name: string, content: string, more = '') =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`
  const form = Buffer.from(
    part('name', 'bench') +
      part('index', readFileSync(index, 'utf8'), '; filename="index.json"') +
      `--${boundary}--\r\n`,
  )
  const begun = await ask(
    {
      method: 'POST',
      path: uploads,
      headers: { 'content-type': multipart, 'content-length': form.length },
    },
    form,
  )
  const { uid } = JSON.parse(begun.body) as { uid: string }
  let count = 0
  for (;;) {
    const { body } = await ask({ method: 'GET', path: `${uploads}/${uid}/missing` })
    const missing = body.split('\n').filter(Boolean)
    if (missing.length === 0) break
    for (const line of missing) {
      const { digest, sizeBytes } = JSON.parse(line) as { digest: string; sizeBytes: number }
      const file = files.get(digest)
      if (file === undefined) throw new Error(`the host asks for ${digest}, which the bundle does not have`)
      const headers = {
        'content-type': 'application/octet-stream',
        'content-length': sizeBytes,
        'content-range': `bytes 0-${sizeBytes - 1}/${sizeBytes}`,
      }
      await ask({ method: 'PATCH', path: `${uploads}/${uid}/blobs/${digest}`, headers }, file)
      count += 1
    }
  }
  await ask({ method: 'POST', path: `${uploads}/${uid}/actions/publish`, headers: { 'content-length': 0 } })
  return count
}

type Answer = Pick<UploadResult, 'status' | 'body'>

/** As `send`. @throws Error when the answer is an error */
async function ask(...given: Parameters<typeof send>): Promise<Answer> {
  const answer = await send(...given)
  const [{ method, path }] = given
  if (answer.status >= 300) throw new Error(`${method} ${path} answers ${answer.status}: ${answer.body}`)
  return answer
}

/** @param body bytes, or the path of a file, with what is sent before and behind it */
async function send(
  options: RequestOptions,
  body?: Buffer | string,
  { head = '', tail = '' } = {},
): Promise<Answer> {
  const headers = {
    ...(options.headers as OutgoingHttpHeaders | undefined),
    ...(token === '' ? {} : { authorization: token }),
  }
  const sent = request({ ...options, headers, host: '127.0.0.1', port, agent })
  sent.on('socket', (used) => (socket = used))
  const replied = readReply(sent)
  if (typeof body === 'string') {
    sent.write(head)
    // A server that refuses the upload stops reading it, so the reply is waited for too.
    await Promise.race([
      replied,
      pipeline(createReadStream(body, { highWaterMark: 262_144 }), sent, { end: false }),
    ])
    sent.end(tail)
  } else sent.end(body)
  return replied
}

async function readReply(sent: ReturnType<typeof request>): Promise<Answer> {
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  let body = ''
  for await (const text of reply.setEncoding('utf8')) body += String(text)
  return { status: reply.statusCode ?? 0, body }
}
