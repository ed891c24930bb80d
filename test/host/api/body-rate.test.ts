import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FedServer } from '../../../src/api/connection/fed-server.ts'
import { fastify } from 'fastify'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchBodyRate } from '../../../src/api/connection/https-server.ts'
import { addJsonBodies } from '../../../src/api/json-body.ts'
import { apiReplies } from '../../../src/api/replies.ts'
import type { TlsMaterial } from '../../../src/system/tls-options.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { makeMaterial, openTls, startServer, type Client } from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const rate = { minimumBytesPerSecond: 1_024, windowSeconds: 0.5 }
const head = (length: number) =>
  `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})

let server: FedServer
let port: number
let stop: () => Promise<void>
let handle: (request: IncomingMessage, response: ServerResponse) => void
let drips: NodeJS.Timeout[]
beforeEach(async () => {
  drips = []
  ;({ server, port, stop } = await startServer(material, (request, response) => handle(request, response)))
  const unwatch = watchBodyRate(server, rate, apiReplies)
  const stopServer = stop
  stop = async () => {
    unwatch()
    await stopServer()
  }
})
afterEach(async () => {
  for (const drip of drips) clearInterval(drip)
  await stop()
})

/** Sends `bytes` every `ms` milliseconds until the connection closes. */
function drip(client: Client, bytes: number, ms = 100): void {
  const timer = setInterval(() => {
    if (!client.closed) client.socket.write('x'.repeat(bytes))
  }, ms)
  drips.push(timer)
}

/** Milliseconds until the connection is closed. */
async function lifeOf(client: Client): Promise<number> {
  const start = performance.now()
  await waitFor(() => expect(client.closed).toBe(true), { timeout: 60_000, interval: 10 })
  return performance.now() - start
}

const read = (request: IncomingMessage, response: ServerResponse) => {
  let length = 0
  request.on('data', (chunk: Buffer) => (length += chunk.length))
  request.on('end', () => response.end(`got ${length}`))
}

describe('watchBodyRate', () => {
  it('a slow body is answered with 408 and its connection closed', async () => {
    handle = read
    const client = await openTls(port, material.cert)
    client.socket.write(head(100_000))
    drip(client, 10)
    const life = await lifeOf(client)
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
    expect(client.received).toMatch(/x-request-id: (\S+)\r\n[^]*"code":"RequestTimeout"[^]*"ref":"\1"/)
    expect(life).toBeGreaterThan(400)
  })

  it('the rate of a body counts the bytes of the client, not those of TLS', async () => {
    handle = read
    const client = await openTls(port, material.cert)
    client.socket.write(head(100_000))
    drip(client, 1, 10)
    await lifeOf(client)
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('a body that never begins, and a chunked one that stops, end the connection', async () => {
    handle = read
    const silent = await openTls(port, material.cert)
    silent.socket.write(head(10))
    const chunked = await openTls(port, material.cert)
    chunked.socket.write(
      'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
    )
    await lifeOf(silent)
    await lifeOf(chunked)
    expect([silent.received, chunked.received].every((text) => text.startsWith('HTTP/1.1 408 '))).toBe(true)
  })

  it('a slow but steady body is accepted, for many windows', async () => {
    handle = read
    const client = await openTls(port, material.cert)
    const total = 20 * 300
    client.socket.write(head(total))
    drip(client, 300)
    await waitFor(() => expect(client.received).toContain(`got ${total}`), { timeout: 60_000 })
    expect(client.received).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('a client is not refused for a time in which the host does not run', async () => {
    let hasBegun = false
    handle = (request, response) => {
      hasBegun = true
      read(request, response)
    }
    const client = await openTls(port, material.cert)
    client.socket.write(head(20 * 300))
    await waitFor(() => expect(hasBegun).toBe(true), { interval: 1 })
    drip(client, 300)
    // For two windows neither side does anything.
    const end = performance.now() + 1_100
    while (performance.now() < end);
    await waitFor(() => expect(client.received).toContain('got 6000'), { timeout: 60_000 })
  })

  it('a body that begins fast and then stops ends the connection', async () => {
    handle = read
    const client = await openTls(port, material.cert)
    client.socket.write(head(100_000) + 'x'.repeat(50_000))
    await lifeOf(client)
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('time in which the handler does not read the body does not count', async () => {
    let started = 0
    handle = (request, response) => {
      started = performance.now()
      // For four windows the handler does not read; the rest of the body cannot even leave the client.
      void vi
        .waitFor(() => expect(performance.now() - started).toBeGreaterThan(2_000), { timeout: 60_000 })
        .then(() => read(request, response))
    }
    const client = await openTls(port, material.cert)
    client.socket.write(head(20_000_000) + 'x'.repeat(20_000_000))
    await waitFor(() => expect(client.received).toContain('got 20000000'), { timeout: 60_000 })
  })

  it('a request with a complete body may wait long for its reply', async () => {
    handle = (request, response) => {
      const started = performance.now()
      request.resume()
      void vi
        .waitFor(() => expect(performance.now() - started).toBeGreaterThan(1_500), { timeout: 60_000 })
        .then(() => response.end('late'))
    }
    const client = await openTls(port, material.cert)
    client.socket.write(head(2) + '{}')
    await waitFor(() => expect(client.received).toContain('late'), { timeout: 60_000 })
  })

  it('a slow body only closes the connection when the reply has begun already', async () => {
    handle = (request, response) => {
      request.resume()
      response.write('begun')
    }
    const client = await openTls(port, material.cert)
    client.socket.write(head(100))
    await lifeOf(client)
    expect(client.received).toMatch(/^HTTP\/1\.1 200 /)
    expect(client.received).not.toContain('408')
  })

  it('there is a timer only while a body is arriving', async () => {
    handle = read
    const begun = vi.spyOn(globalThis, 'setInterval')
    const ended = vi.spyOn(globalThis, 'clearInterval')
    const period = (rate.windowSeconds * 1_000) / 10
    const timers = () => begun.mock.results.filter((_result, index) => begun.mock.calls[index]![1] === period)
    const client = await openTls(port, material.cert)
    client.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n')
    await waitFor(() => expect(client.received).toContain('got 0'))
    const before = timers().length
    client.socket.write(head(2))
    await waitFor(() => expect(timers()).toHaveLength(before + 1))
    client.socket.write('{}')
    await waitFor(() => expect(client.received).toContain('got 2'))
    await waitFor(() => expect(ended).toHaveBeenCalledWith(timers().at(-1)!.value))
  })

  it('the reader of a slow body is notified, so that the application replies in its own form', async () => {
    const seen: unknown[] = []
    const app = fastify()
    app.decorate('stopping', new AbortController().signal)
    addJsonBodies(app)
    app.setErrorHandler(async (error, request, reply) => {
      seen.push(error)
      // For several checks: what was stored is removed first.
      const refusedAt = performance.now()
      await vi.waitFor(() => expect(performance.now() - refusedAt).toBeGreaterThan(200), { timeout: 60_000 })
      return reply
        .code(error instanceof AppError ? error.status : 500)
        .send({ code: 'FromTheApp', ref: request.id })
    })
    app.post('/', async () => 'never')
    await app.ready()
    handle = (request, response) => app.routing(request, response)
    const client = await openTls(port, material.cert)
    client.socket.write(head(1_000))
    await lifeOf(client)
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
    expect(client.received).toContain('"code":"FromTheApp"')
    expect(client.received.toLowerCase()).toContain('connection: close')
    expect(seen).toHaveLength(1)
    expect(seen[0]).toBeInstanceOf(AppError)
    await app.close()
  })
})
