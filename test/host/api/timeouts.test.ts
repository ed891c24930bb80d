import { beforeAll, describe, expect, it } from 'vitest'
import { createParserErrorReply } from '../../../src/api/errors.ts'
import { apiReplies } from '../../../src/api/replies.ts'
import { clientFromAnywhere } from '../../../src/base/client.ts'
import { watchReplies } from '../../../src/api/connection/local-server.ts'
import { createPeers } from '../../../src/api/connection/peer.ts'
import type { TlsMaterial } from '../../../src/system/tls-options.ts'
import {
  captureLog,
  generous,
  makeMaterial,
  openTcp,
  openTls,
  startServer,
  type Client,
} from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const parserError = {
  replies: apiReplies,
  peerOf: createPeers({ isLocal: () => false, clientOf: clientFromAnywhere }).ofSocket,
  replyOn: () => undefined,
}

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})

const ask = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

/**
 * Milliseconds until the connection is closed; a failure after 10 s, which is far from the 60 s of `generous` and from
 * the 30 s at which Node checks by default. No narrower bound: client and server share the event loop of a busy machine.
 */
async function lifeOf(client: Client): Promise<number> {
  const start = performance.now()
  await waitFor(() => expect(client.closed).toBe(true), { timeout: 60_000, interval: 10 })
  return performance.now() - start
}

it.each([
  ['what is not HTTP', 'hello\r\n\r\n', 400, 'BadRequest'],
  ['a header that never ends', 'GET / HTTP/1.1\r\na: b\r\n', 408, 'RequestTimeout'],
  [
    'a header that is too large',
    `GET / HTTP/1.1\r\na: ${'x'.repeat(17_000)}\r\n\r\n`,
    431,
    'HeadersTooLarge',
  ],
])(
  '%s gets the standard error body, with a reference that finds the journal line',
  async (_what, text, status, code) => {
    const { server, port, stop } = await startServer(material, () => undefined, {
      ...generous,
      headersMs: 500,
    })
    const { log, lines } = captureLog()
    server.on('clientError', createParserErrorReply({ ...parserError, lines: log }))
    const client = await openTls(port, material.cert)
    client.socket.write(text)
    await lifeOf(client)
    const [head = '', body = ''] = client.received.split('\r\n\r\n')
    const ref = /^X-Request-Id: (\S+)$/m.exec(head)?.[1]
    expect(head).toContain(`HTTP/1.1 ${status} `)
    expect(JSON.parse(body)).toEqual({ code, message: 'the request could not be read as HTTP', ref })
    expect(lines.filter((line) => line.ref === ref)).toMatchObject([{ status, address: '127.0.0.1' }])
    await stop()
  },
)

it.each([
  ['that waits for its reply gets it first', ask, '200 '],
  [
    'whose own body cannot be read gets the refusal',
    `${ask.trim()}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    '400 ',
  ],
])('a request %s when bytes follow that are not HTTP', async (_, request, status) => {
  const { server, port, stop } = await startServer(material, ({ headers }, response) => {
    if (headers['transfer-encoding'] === undefined) setTimeout(() => response.end('late'), 100)
  })
  server.on(
    'clientError',
    createParserErrorReply({ ...parserError, lines: captureLog().log, replyOn: watchReplies(server) }),
  )
  const client = await openTls(port, material.cert)
  client.socket.write(`${request}hello\r\n\r\n`)
  await lifeOf(client)
  expect(client.received.slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 4)).toBe(status)
  expect(client.received.match(/HTTP\/1\.1 400 /g)).toHaveLength(1)
  await stop()
})

describe.concurrent('timeouts', () => {
  it('a TCP connection that never begins TLS is closed', async () => {
    const { port, stop } = await startServer(material, () => undefined, { ...generous, handshakeMs: 500 })
    expect(await lifeOf(await openTcp(port))).toBeGreaterThan(400)
    await stop()
  })

  it('a connection that never begins TLS is closed too when the application replies to unreadable input', async () => {
    const { server, port, stop } = await startServer(material, () => undefined, {
      ...generous,
      handshakeMs: 500,
    })
    server.on('clientError', createParserErrorReply({ ...parserError, lines: captureLog().log }))
    const silent = await openTcp(port)
    const half = await openTcp(port)
    // The header of a TLS record whose content never arrives.
    half.socket.write('\u0016\u0003\u0001\u0000\u0050')
    await lifeOf(silent)
    await lifeOf(half)
    expect(silent.received).toBe('')
    await stop()
  })

  it('a TLS connection that never sends a header is closed', async () => {
    const { port, stop } = await startServer(material, () => undefined, { ...generous, headersMs: 500 })
    await lifeOf(await openTls(port, material.cert))
    await stop()
  })

  it('a request whose header arrives byte by byte is closed with 408', async () => {
    const { port, stop } = await startServer(material, () => undefined, { ...generous, headersMs: 500 })
    const client = await openTls(port, material.cert)
    client.socket.write('GET / HTTP/1.1\r\n')
    const drip = setInterval(() => client.socket.write('a: b\r\n'), 100)
    await lifeOf(client)
    clearInterval(drip)
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
    await stop()
  })

  it('a connection that is idle after a request is closed', async () => {
    const { port, stop } = await startServer(material, (_request, response) => response.end('hello'), {
      ...generous,
      idleMs: 500,
    })
    const client = await openTls(port, material.cert)
    client.socket.write(ask)
    await waitFor(() => expect(client.received).toContain('hello'))
    await lifeOf(client)
    await stop()
  })

  it('a request that takes longer than header and idle time is not closed', async () => {
    const { port, stop } = await startServer(
      material,
      (request, response) => {
        request.resume()
        request.on('end', () => response.end('hello'))
      },
      { ...generous, handshakeMs: 2_000, headersMs: 2_000, idleMs: 2_000 },
    )
    const client = await openTls(port, material.cert)
    client.socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n')
    let sent = 0
    const drip = setInterval(() => {
      client.socket.write('x')
      sent += 1
      if (sent === 50) clearInterval(drip)
    }, 100)
    await waitFor(() => expect(client.received).toContain('hello'), { timeout: 60_000 })
    await stop()
  })

  it('header fields over 16 KiB are refused with 431', async () => {
    const { port, stop } = await startServer(material, (_request, response) => response.end('hello'))
    const fits = await openTls(port, material.cert)
    fits.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\na: ${'x'.repeat(15_000)}\r\n\r\n`)
    await waitFor(() => expect(fits.received).toContain('hello'))
    const large = await openTls(port, material.cert)
    large.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\na: ${'x'.repeat(17_000)}\r\n\r\n`)
    await lifeOf(large)
    expect(large.received).toMatch(/^HTTP\/1\.1 431 /)
    await stop()
  })
})

// Not concurrent, since the encryption blocks the event loop for a second.
it('a connection whose client does not read its reply is closed', async () => {
  const timeouts = { ...generous, stalledMs: 500 }
  const { promise: ended, resolve } = Promise.withResolvers<boolean>()
  const { port, stop } = await startServer(
    material,
    (_request, response) => {
      response.once('close', () => resolve(response.writableFinished))
      response.end('x'.repeat(50_000_000))
    },
    timeouts,
  )
  const client = await openTls(port, material.cert)
  client.socket.pause()
  client.socket.write(ask)
  expect(await ended).toBe(false)
  client.socket.destroy()
  await stop()
})
