// Sends a file in a form, as curl -F does, or as the body, over a connection that is open already. Prints an UploadResult.
import { once } from 'node:events'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { pipeline } from 'node:stream/promises'

export interface UploadArgs {
  readonly port: number
  /** PEM file of the certificate that is trusted. */
  readonly certificate: string
  readonly token: string
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

const {
  port,
  certificate,
  token,
  path,
  file,
  isBare = false,
} = JSON.parse(process.argv[2] ?? '') as UploadArgs
const ca = readFileSync(certificate, 'utf8')
const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, servername: 'localhost' })
const to = { host: '127.0.0.1', port, agent }

const ping = request({ ...to, path: '/v1/ping' }).end()
await readReply(ping)

const boundary = '----edgehostd-bench-8f14e45fceea167a'
const head = isBare
  ? ''
  : `--${boundary}\r\nContent-Disposition: form-data; name="uploadFile"; filename="bench.tar.zst"\r\n\r\n`
const tail = isBare ? '' : `\r\n--${boundary}--\r\n`
const bytes = head.length + statSync(file).size + tail.length
const startedAt = performance.now()
const upload = request({
  ...{ ...to, path, method: 'POST' },
  headers: {
    ...{ authorization: token, 'content-length': bytes },
    'content-type': `multipart/form-data; boundary=${boundary}`,
  },
})
const replied = readReply(upload)
upload.write(head)
// A server that refuses the upload stops reading it, so the reply is waited for too.
await Promise.race([
  replied,
  pipeline(createReadStream(file, { highWaterMark: 262_144 }), upload, { end: false }),
])
upload.end(tail)
const result: UploadResult = { ...(await replied), bytes, durationMs: performance.now() - startedAt }
console.log(JSON.stringify(result))
process.exit(0)

async function readReply(sent: ReturnType<typeof request>): Promise<Pick<UploadResult, 'status' | 'body'>> {
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  let body = ''
  for await (const text of reply.setEncoding('utf8')) body += String(text)
  return { status: reply.statusCode ?? 0, body }
}
