import { createConnection, type Socket } from 'node:net'
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  IncomingHttpStatusHeader,
} from 'node:http2'
import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import { AnswerNotUnderstood, AnswerTooLarge } from './wire.ts'

/**
 * Connects to a Unix socket.
 * @throws the system's error as it is, for example `ENOENT`; the reason of the signal
 */
function connectSocket(path: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const socket = createConnection({ path })
    const abort = () => socket.destroy(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    const settle = () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', fail)
    }
    const fail = (error: Error) => {
      settle()
      reject(error)
    }
    socket.once('error', fail)
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
  })
}

interface GrpcRequest {
  /** `/package.Service/Method`. */
  readonly path: string
  readonly message: Buffer
  readonly metadata: Readonly<Record<string, string>>
  /** Most bytes of all messages of the reply. */
  readonly maximumBytes: number
}

/** A connection to a server that listens on a Unix socket. */
export interface GrpcConnection {
  /**
   * Calls a method that takes one message.
   * @returns the messages of the reply, one unless the method streams
   * @throws GrpcStatus, AnswerTooLarge, AnswerNotUnderstood, the errors of the socket
   */
  call(request: GrpcRequest): Promise<readonly Buffer[]>
  close(): void
}

/** The server has answered with a status that is not 0. */
export class GrpcStatus extends Error {
  override readonly name = 'GrpcStatus'
  readonly code: number

  constructor(code: number, message: string) {
    super(message === '' ? `gRPC status ${code}` : message)
    this.code = code
  }
}

/** https://github.com/grpc/grpc/blob/master/doc/statuscodes.md */
export const grpcNotFound = 5

const headerBytes = 5
// Content is read in messages of 32 KiB and more.
const mostMessages = 1_000
// The window of HTTP/2 is 64 KiB by default, and a reply of some MB would wait for its updates.
const windowBytes = 1_048_576

/**
 * Connects to a gRPC server without TLS. It sends one message a call and has no retries, balancing and compression; ADR 22 says why no
 * library is used. Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 * @param signal ends the connection with all its calls
 */
export async function connectGrpc(path: string, signal: AbortSignal): Promise<GrpcConnection> {
  const socket = await connectSocket(path, signal)
  // Loaded by the first reading of a host that has such a server.
  const { connect } = await import('node:http2')
  const session = connect('http://localhost', {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: windowBytes },
  })
  let failure: Error | undefined
  // Calls read it when they end; a session without calls has nothing to report.
  session.on('error', (error: Error) => {
    failure ??= error
  })
  const abort = () => {
    failure = signal.reason as Error
    session.destroy()
  }
  signal.addEventListener('abort', abort, { once: true })
  session.once('close', () => signal.removeEventListener('abort', abort))
  return {
    call: (request) => call(session, request, () => failure),
    close: () => session.destroy(),
  }
}

async function call(
  session: ClientHttp2Session,
  { message, maximumBytes, ...request }: GrpcRequest,
  failureOf: () => Error | undefined,
): Promise<readonly Buffer[]> {
  let answer: Answer
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': request.path,
      te: 'trailers',
      'content-type': 'application/grpc',
      ...request.metadata,
    })
    stream.end(frame(message))
    answer = await receive(stream, maximumBytes)
  } catch (error) {
    // Of a session that has failed or was aborted, each stream ends without the reason.
    throw understandable(failureOf() ?? (error as Error))
  }
  requireSuccess(answer)
  return splitMessages(answer.body)
}

interface Answer {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader
  readonly trailers: IncomingHttpHeaders
  readonly body: Buffer
}

function receive(stream: ClientHttp2Stream, maximumBytes: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const body = createGrowingBuffer(maximumBytes)
    let headers: Answer['headers'] = {}
    let trailers: Answer['trailers'] = {}
    stream.on('response', (received) => {
      headers = received
    })
    stream.on('trailers', (received: IncomingHttpHeaders) => {
      trailers = received
    })
    stream.on('data', (chunk: Buffer) => {
      if (!body.add(chunk)) stream.destroy(new AnswerTooLarge(maximumBytes))
    })
    stream.once('error', reject)
    // The last event, also after an error.
    stream.once('close', () => resolve({ headers, trailers, body: body.bytes() }))
  })
}

/** Errors of HTTP/2 as AnswerNotUnderstood. */
function understandable(error: Error & { code?: string }): Error {
  return error.code?.startsWith('ERR_HTTP2') ? new AnswerNotUnderstood(error.message) : error
}

/** A reply without messages has its status in the header, every other one in the trailer. */
function requireSuccess({ headers, trailers }: Answer): void {
  const status = trailers['grpc-status'] ?? headers['grpc-status']
  if (headers[':status'] !== 200 || !/^\d{1,3}$/.test(String(status)))
    throw new AnswerNotUnderstood('it is no gRPC server, or closed the connection')
  const said = trailers['grpc-message'] ?? headers['grpc-message'] ?? ''
  if (Number(status) !== 0) throw new GrpcStatus(Number(status), decodeMessage(String(said)))
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function frame(message: Buffer): Buffer {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32BE(message.length, 1)
  return Buffer.concat([header, message])
}

function splitMessages(reply: Buffer): Buffer[] {
  const messages: Buffer[] = []
  for (let at = 0; at < reply.length;) {
    if (at + headerBytes > reply.length) throw new AnswerNotUnderstood('a message is cut off')
    // No encoding was offered.
    if (reply[at] !== 0) throw new AnswerNotUnderstood('a message is compressed')
    const end = at + headerBytes + reply.readUInt32BE(at + 1)
    if (end > reply.length) throw new AnswerNotUnderstood('a message is cut off')
    if (messages.length === mostMessages) throw new AnswerTooLarge(`${mostMessages} messages`)
    messages.push(reply.subarray(at + headerBytes, end))
    at = end
  }
  return messages
}
