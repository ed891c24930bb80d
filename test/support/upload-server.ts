import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fastify } from 'fastify'
import { clientFromAnywhere } from '../../src/base/client.ts'
import { createPeers } from '../../src/api/connection/peer.ts'
import { apiReplies } from '../../src/api/replies.ts'
import { leaveUnreadBodies, LingeringResponse } from '../../src/api/connection/waiting-replies.ts'
import { addErrorReplies } from '../../src/api/errors.ts'
import { formParts, addMultipart } from '../../src/upload/multipart.ts'
import { receiveUpload, uploadField, type Upload, type UploadOptions } from '../../src/upload/receive.ts'

export interface UploadReply {
  readonly status: number
  readonly body: {
    readonly code?: string
    readonly message?: string
    readonly details?: object
  } & Partial<Upload>
}

/** A server on loopback with one route that receives uploads, and one for JSON. */
export async function startUploadServer(at?: string) {
  const folder = at ?? (await mkdtemp(join(tmpdir(), 'edgehostd-upload-')))
  const settings: { -readonly [Name in keyof UploadOptions]?: UploadOptions[Name] } = {}
  const outcomes: unknown[] = []
  const app = fastify({ bodyLimit: 1_024, http: { ServerResponse: LingeringResponse } })
  const peerOf = createPeers({ isLocal: () => false, clientOf: clientFromAnywhere }).ofSocket
  app.decorateRequest('peer')
  app.addHook('onRequest', async (request) => {
    request.peer = peerOf(request.socket)
  })
  addErrorReplies(app, { replies: apiReplies, onUnrouted: () => undefined })
  leaveUnreadBodies(app.server)
  app.post('/json', (request) => ({ body: request.body }))
  await addMultipart(app, async (scope) => {
    scope.post('/', async (request) => {
      const length = request.headers['content-length']
      try {
        const upload = await receiveUpload({
          parts: formParts(request, uploadField, settings.signal),
          folder,
          limitBytes: 1_000_000_000,
          reserveBytes: 0,
          freeBytes: async () => Number.MAX_SAFE_INTEGER,
          expectedBytes: length === undefined ? undefined : Number(length),
          signingKey: undefined,
          ...settings,
        })
        outcomes.push(upload)
        return upload
      } catch (error) {
        outcomes.push(error)
        throw error
      }
    })
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    folder,
    /** The settings for the next uploads. */
    settings,
    /** The result or the error of each upload. */
    outcomes,
    left: () => readdir(folder),
    connections: () => promisify(app.server.getConnections.bind(app.server))(),
    open: async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      return socket
    },
    stop: async () => {
      app.server.closeAllConnections()
      await app.close()
      if (at === undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}

export type UploadServer = Awaited<ReturnType<typeof startUploadServer>>

export interface Part {
  readonly name: string
  readonly content: Buffer | string
  /** Left out for a text field. */
  readonly fileName?: string
  /** More header lines. */
  readonly headers?: string
}

/** The bytes of a form, and its Content-Type. */
export function form(...parts: Part[]) {
  const boundary = `----edge${randomBytes(8).toString('hex')}`
  const chunks = parts.flatMap(({ name, content, fileName, headers = '' }) => {
    const file = fileName === undefined ? '' : `; filename="${fileName}"`
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${headers}\r\n`
    return [Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')]
  })
  const body = Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)])
  return { body, type: `multipart/form-data; boundary=${boundary}`, boundary }
}

/** Sends a body as it is; iterables are sent chunked unless `headers` names a length. Resolves with the reply. */
export async function post(
  port: number,
  type: string,
  body: Buffer | AsyncIterable<Buffer>,
  { headers = {}, path = '/' }: { headers?: OutgoingHttpHeaders; path?: string } = {},
): Promise<UploadReply & { sentBytes: number }> {
  const length = Buffer.isBuffer(body) ? { 'content-length': body.length } : {}
  const request = httpRequest({
    port,
    path,
    method: 'POST',
    agent: false,
    headers: { 'content-type': type, ...length, ...headers },
  })
  const replied = once(request, 'response').then(async ([response]) => {
    let text = ''
    for await (const chunk of response) text += String(chunk)
    return { status: response.statusCode as number, body: JSON.parse(text) as UploadReply['body'] }
  })
  let sentBytes = 0
  let over = false
  void replied.then(
    () => (over = true),
    () => (over = true),
  )
  request.on('error', () => undefined)
  const send = async () => {
    if (Buffer.isBuffer(body)) return void request.end(body)
    for await (const chunk of body) {
      if (over) break
      sentBytes += chunk.length
      if (!request.write(chunk)) await Promise.race([once(request, 'drain'), replied])
    }
    request.end()
  }
  const [reply] = await Promise.all([replied, send().catch(() => undefined)])
  request.destroy()
  return { ...reply, sentBytes }
}
