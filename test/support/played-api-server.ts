import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { makeMaterial } from './https-server.ts'

/** A server over TLS that answers as a test wants, where a real API server would have to be brought to it. */
export interface PlayedApiServer {
  /** Method and path of each request, in order. */
  readonly asked: readonly string[]
  /** Number of connections so far. */
  connections(): number
  kubeconfig(): Promise<string>
  /** Cuts all connections. */
  cut(): void
  stop(): Promise<void>
}

export interface PlayedRequest {
  readonly url: URL
  readonly request: IncomingMessage
  readonly response: ServerResponse
  json(body: unknown, status?: number): void
  /** Lines of a watch; the reply continues. */
  lines(...lines: readonly unknown[]): void
}

/** @param play answers requests; what it throws is a defect of the test */
export async function startPlayedApiServer(play: (played: PlayedRequest) => void): Promise<PlayedApiServer> {
  const material = await makeMaterial()
  const asked: string[] = []
  const raws = new Set<Duplex>()
  let connections = 0
  const server = createServer(material, (request, response) => {
    const url = new URL(request.url ?? '', 'https://localhost')
    asked.push(`${request.method} ${request.url}`)
    request.resume()
    play({
      ...{ url, request, response },
      json: (body, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
      lines: (...lines) => lines.forEach((line) => response.write(`${JSON.stringify(line)}\n`)),
    })
  })
  server.on('connection', (raw) => {
    connections += 1
    raws.add(raw)
    raw.on('close', () => raws.delete(raw))
    raw.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const data = (text: string) => Buffer.from(text).toString('base64')
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [
      {
        name: 'a',
        cluster: {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority-data': data(material.cert),
        },
      },
    ],
    users: [
      {
        name: 'a',
        user: {
          'client-certificate-data': data(material.cert),
          'client-key-data': data(material.key),
        },
      },
    ],
  }
  const cut = () => raws.forEach((raw) => raw.destroy())
  return {
    ...{ asked, cut },
    connections: () => connections,
    kubeconfig: () => Promise.resolve(JSON.stringify(config)),
    async stop() {
      if (!server.listening) return
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}
