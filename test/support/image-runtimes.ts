import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

const recorded = join(import.meta.dirname, '../fixtures/image-runtimes')
const read = (name: string) => readFileSync(join(recorded, name), 'utf8')
/** Replies of Docker 20.10, of containerd 1.6 (messages, base64), and the storage of Podman 4.3, as Debian 12 has them. */
export const dockerImages = () => JSON.parse(read('docker-20.10-images.json')) as Record<string, unknown>[]
export const dockerInspected = () => read('docker-20.10-inspect.json')
export const containerdLists = () =>
  JSON.parse(read('containerd-1.6-lists.json')) as { namespaces: string; images: Record<string, string> }
/** A folder in which Podman has its storage as on a host. */
export const podmanRoot = join(recorded, 'podman')

/** The digest of the index, and the id of the image, that all three recordings have. */
export const multi = {
  index: 'sha256:95d692543460db47e3962579dd6ffc3afc4e75d7d4f2f66fafc8b425c017005d',
  imageId: 'sha256:27c201cd66735699ee7014df24116298765eddf988dbb7c86efaed1d43389e87',
}

/** A server on a Unix socket. */
export interface Played {
  stop(): Promise<void>
}

const listen = (server: Pick<Server, 'listen' | 'once' | 'close'>, path: string, sockets: Set<Socket>) =>
  new Promise<Played>((resolve) => {
    server.once('listening', () =>
      resolve({
        stop: () =>
          new Promise((done) => {
            server.close(() => done())
            for (const socket of sockets) socket.destroy()
          }),
      }),
    )
    server.listen(path)
  })

function socketsOf(server: {
  on(event: 'connection', take: (socket: Socket) => void): unknown
}): Set<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

/** A server that does with a connection whatever the test wants. */
export function playSocket(path: string, take: (socket: Socket) => unknown): Promise<Played> {
  const server = createServer(take)
  return listen(server, path, socketsOf(server))
}

/** Docker with these images. @returns also what was asked */
export async function playDocker(
  path: string,
  images: () => readonly object[],
  inspected = dockerInspected(),
) {
  const asked: string[] = []
  const server = createHttpServer((request, reply) => {
    asked.push(request.url ?? '')
    reply.setHeader('content-type', 'application/json')
    reply.end(request.url === '/images/json' ? JSON.stringify(images()) : inspected)
  })
  return { asked, ...(await listen(server, path, socketsOf(server))) }
}

export interface PlayedContainerd {
  /** Replies to Namespaces/List, and to Images/List by namespace. */
  readonly namespaces: Buffer
  readonly images: (namespace: string) => Buffer
  /** Documents by their digests. */
  readonly blob: (digest: string) => Buffer | undefined
}

const frame = (message: Buffer) => {
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.length, 1)
  return Buffer.concat([header, message])
}

/** One field of bytes, with a length of up to 28 bits. */
export function protobufBytes(number: number, content: Buffer): Buffer {
  const length: number[] = []
  for (let rest = content.length; ; rest >>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest)
    if (rest <= 127) return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), content])
  }
}

/** Containerd with these images. @returns also the digests that were read */
export async function playContainerd(path: string, played: PlayedContainerd) {
  const reads: string[] = []
  const server = createHttp2Server()
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = []
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.once('end', () => {
      const method = String(headers[':path'])
      const answer = (message: Buffer | undefined) => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.once('wantTrailers', () =>
          stream.sendTrailers(
            message ? { 'grpc-status': '0' } : { 'grpc-status': '5', 'grpc-message': 'not found' },
          ),
        )
        stream.end(message && frame(message))
      }
      if (method.endsWith('Namespaces/List')) answer(played.namespaces)
      else if (method.endsWith('Images/List')) answer(played.images(String(headers['containerd-namespace'])))
      else {
        const digest = /sha256:[0-9a-f]{64}/.exec(Buffer.concat(chunks).toString('latin1'))?.[0] ?? ''
        reads.push(digest)
        const found = played.blob(digest)
        answer(found && protobufBytes(2, found))
      }
    })
  })
  return { reads, ...(await listen(server, path, socketsOf(server))) }
}

/** What Namespaces/List and Images/List reply. */
export const namespacesMessage = (names: readonly string[]) =>
  Buffer.concat(names.map((name) => protobufBytes(1, protobufBytes(1, Buffer.from(name)))))
export const imagesMessage = (images: readonly { readonly name: string; readonly digest: string }[]) =>
  Buffer.concat(
    images.map(({ name, digest }) =>
      protobufBytes(
        1,
        Buffer.concat([
          protobufBytes(1, Buffer.from(name)),
          protobufBytes(3, protobufBytes(2, Buffer.from(digest))),
        ]),
      ),
    ),
  )
