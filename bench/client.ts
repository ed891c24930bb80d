import { Agent, request } from 'node:https'

export interface Reply {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: Buffer
  /** From the call to the last byte of the reply. */
  readonly durationMs: number
}

export interface RequestOptions {
  readonly token?: string
  /** Sent as JSON. */
  readonly body?: unknown
}

/** One client of a server on the loopback: one connection, kept alive. */
export interface Client {
  /** @throws Error when there is no reply */
  send(method: 'GET' | 'POST' | 'DELETE', path: string, options?: RequestOptions): Promise<Reply>
  close(): void
}

export interface ClientOptions {
  readonly port: number
  /** PEM. */
  readonly ca: string
}

const timeoutMs = 30_000

export function createClient({ port, ca }: ClientOptions): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, servername: 'localhost' })
  return {
    send(method, path, { token, body } = {}) {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = {
        ...(token === undefined ? {} : { authorization: token }),
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      }
      return new Promise((resolve, reject) => {
        const startedAt = performance.now()
        const sent = request({ host: '127.0.0.1', port, method, path, headers, agent, timeout: timeoutMs })
        sent.on('response', (reply) => {
          const chunks: Buffer[] = []
          reply.on('data', (chunk: Buffer) => chunks.push(chunk))
          reply.on('error', reject)
          reply.on('end', () =>
            resolve({
              status: reply.statusCode ?? 0,
              headers: reply.headers,
              body: Buffer.concat(chunks),
              durationMs: performance.now() - startedAt,
            }),
          )
        })
        sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no reply in ${timeoutMs} ms`)))
        sent.on('error', reject)
        sent.end(text)
      })
    },
    close: () => agent.destroy(),
  }
}
