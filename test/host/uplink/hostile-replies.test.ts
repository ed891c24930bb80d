import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { generateKey, signCertificate } from '../../../src/certificate/certificate.ts'
import { createPlatformClient, type Call } from '../../../src/uplink/client.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A client of a server that answers each request with these bytes, whatever they are. */
async function clientOf(answer: (socket: TLSSocket) => void) {
  const now = Date.now()
  const key = generateKey()
  const cert = await signCertificate({
    ...{ key, names: { hostName: 'box', addresses: [] } },
    ...{ now, buildDate: now - 86_400_000 },
  })
  const server = createServer(
    { key: key.export({ type: 'pkcs8', format: 'pem' }), cert, ALPNProtocols: ['http/1.1'] },
    (socket) => {
      ends.push(() => socket.destroy())
      socket.on('error', () => undefined)
      socket.on('data', () => answer(socket))
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createPlatformClient({ url, ca: cert, now: () => Date.now(), timeoutMs: 10_000 })
  ends.push(client.close)
  return (secrets: Pick<Call, 'token' | 'secrets'> = {}) =>
    client.call({ method: 'GET', path: '/v1/x', ...secrets })
}

const withBody = (status: number, body: string) =>
  `HTTP/1.1 ${status} x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

describe('a call ends, and says that no platform answers,', () => {
  it.each([
    ['a change of the protocol', 'HTTP/1.1 101 x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['the status of such a change alone', 'HTTP/1.1 101 x\r\n\r\n'],
    ['a status that does not exist', withBody(999, '{}')],
    ['hints without end', 'HTTP/1.1 103 x\r\nlink: a\r\n\r\n'.repeat(100)],
    ['headers that are too large', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['what is not HTTP', 'hello\n'],
    ['a number', withBody(200, '12')],
    ['a text of JSON', withBody(200, `"${'x'.repeat(100_000)}"`)],
    ['a long error', withBody(500, `{"message":"${'x'.repeat(100_000)}"}`)],
    ['a reply of a megabyte', withBody(200, `{"a":"${'x'.repeat(1_000_000)}"}`)],
  ])('after %s', async (_, bytes) => {
    const call = await clientOf((socket) => void socket.write(bytes))
    expect((await call()).cause?.kind).toBe('foreign')
  })
})

describe('an error', () => {
  it.each([
    ['a text', JSON.stringify('x'.repeat(60_000))],
    ['a list', `[${'1,'.repeat(30_000)}1]`],
  ])('with %s instead of an object costs this process little', async (_, body) => {
    const call = await clientOf((socket) => void socket.write(withBody(500, body)))
    const answer = await call()
    expect(answer).toMatchObject({
      status: 500,
      cause: { message: expect.stringContaining('500') as string },
    })
    expect(answer.body).toBeUndefined()
  })
})

describe('a refusal', () => {
  it('that repeats the secrets of the call does not bring them into a message', async () => {
    const body = '{"code":"X","message":"you sent T0KEN and PR00F"}'
    const call = await clientOf((socket) => void socket.write(withBody(400, body)))
    const { cause } = await call({ token: 'T0KEN', secrets: ['PR00F', ''] })
    expect(cause?.message).toBe('the platform answered 400: you sent (secret) and (secret)')
  })

  it('that repeats the token of an earlier call does not bring it into a message', async () => {
    const call = await clientOf((socket) => void socket.write(withBody(401, '{"message":"was it T0KEN?"}')))
    await call({ token: 'T0KEN' })
    expect((await call()).cause?.message).toBe('the platform answered 401: was it (secret)?')
  })

  it('with characters that a terminal obeys has them escaped', async () => {
    const message = 'a\u009b2J\u001b[2J\n\u202eevil\u2066\u2028\u0007 \ud83d'
    const call = await clientOf(
      (socket) => void socket.write(withBody(500, JSON.stringify({ message: `${message} é` }))),
    )
    expect((await call()).cause?.message).toBe(
      String.raw`the platform answered 500: a\u009b2J\u001b[2J\u000a\u202eevil\u2066\u2028\u0007 \ud83d é`,
    )
  })
})
