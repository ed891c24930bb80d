import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openTls, type Client } from '../../support/https-server.ts'
import { currentPath, loginPath, logoutPath } from '../../support/test-edge.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

let wire: WireEdge
beforeAll(async () => {
  const rate = { requestsPerSecond: 1_000, burst: 5 }
  wire = await createWireEdge({
    rateLimits: {
      ...rate,
      login: rate,
      blobs: rate,
      enabled: true,
      resources: ['settings=1/1'],
      trackedKeys: 100,
    },
  })
})
afterAll(() => wire.stop())

const json = 'Content-Type: application/json'
const head = (method: string, path: string, ...fields: string[]) =>
  `${[`${method} ${path} HTTP/1.1`, 'Host: box', ...fields].join('\r\n')}\r\n\r\n`
const statusOf = ({ received }: Client) => /^HTTP\/1\.1 (\d+) /.exec(received)?.[1]
const answer = (client: Client, count = 1) =>
  waitFor(() => expect(client.received.split('HTTP/1.1 ').length - 1, client.received).toBe(count), {
    timeout: 60_000,
    interval: 5,
  })
const closed = (client: Client) =>
  waitFor(() => expect(client.closed).toBe(true), { timeout: 60_000, interval: 5 })

const refusals = [
  ['a path that is not there', 'POST', '/v1/nothing', '404'],
  ['a method that is not there', 'PUT', '/v1/ping', '405'],
  ['a request without a token', 'POST', logoutPath, '401'],
  ['a body that is too large', 'POST', loginPath, '413'],
  ['a path that cannot be decoded', 'POST', '/v1/%zz', '400'],
  ['a read that wants no body', 'GET', '/v1/ping', '200'],
  ['a request over the limit', 'POST', '/v1/edge-mgmt/settings', '429'],
] as const

// Each connection is closed two seconds after its reply: the tests of a group wait concurrently.
describe('a body that waits for 100 Continue', () => {
  it.concurrent.each(refusals)('the body of %s is neither requested nor read', async (...refusal) => {
    const [, method, path, status] = refusal
    const client = await openTls(wire.port, wire.cert)
    if (status === '429') {
      const first = await openTls(wire.port, wire.cert)
      first.socket.write(head('GET', path))
      await answer(first)
    }
    client.socket.write(head(method, path, json, 'Content-Length: 200000000', 'Expect: 100-continue'))
    await answer(client)
    expect(statusOf(client)).toBe(status)
    expect(client.received).toMatch(/^connection: close\r$/im)
    await closed(client)
  })
})

describe('a body of 200 MB', () => {
  it.concurrent.each(refusals)(
    'of the body of %s hardly anything is read, and the reply arrives',
    async (...refusal) => {
      const [, method, path] = refusal
      const client = await openTls(wire.port, wire.cert)
      let sent = 0
      const chunk = Buffer.alloc(1_000_000, 'x')
      const send = () => {
        if (client.closed || sent >= 200) return
        sent += 1
        // The client waits for `drain` each time: a chunk is larger than the buffer of the socket.
        client.socket.write(chunk)
      }
      client.socket.on('drain', send)
      client.socket.write(head(method, path, json, 'Content-Length: 200000000'))
      send()
      await answer(client)
      await closed(client)
      expect(sent).toBeLessThan(30)
    },
  )
})

it('a client that sends a small body completely before it reads gets the reply, and the connection stays open', async () => {
  const client = await openTls(wire.port, wire.cert)
  for (const [count, path, status] of [
    [1, '/v1/nothing', 404],
    [2, logoutPath, 405],
    [3, '/v1/ping', 405],
  ] as const) {
    client.socket.write(head('PUT', path, json, 'Content-Length: 2000'))
    client.socket.write('x'.repeat(1_000))
    await answer(client, count)
    client.socket.write('x'.repeat(1_000))
    expect(client.received).toContain(`HTTP/1.1 ${status} `)
  }
  expect(client.closed).toBe(false)
  client.socket.write(head('GET', '/v1/ping'))
  await answer(client, 4)
  expect(client.received).toContain('pong')
  client.socket.destroy()
})

it('a client that keeps sending after a refusal is not reset before it has read the refusal', async () => {
  const client = await openTls(wire.port, wire.cert)
  const failed = vi.fn()
  client.socket.on('error', failed)
  client.socket.write(head('POST', loginPath, json, 'Content-Length: 90000'))
  client.socket.pause()
  // More bytes than had arrived when the refusal was sent.
  for (let sent = 0; sent < 9; sent += 1) {
    client.socket.write('x'.repeat(10_000))
    await new Promise((done) => setImmediate(done))
  }
  client.socket.resume()
  await closed(client)
  expect(statusOf(client)).toBe('413')
  expect(client.received).toContain('"code":"PayloadTooLarge"')
  expect(failed).not.toHaveBeenCalled()
})

it('a body that a handler reads is requested and read, and the connection stays open', async () => {
  const body = '{"username":"alice","password":"alice pass"}'
  const client = await openTls(wire.port, wire.cert)
  client.socket.write(head('POST', loginPath, json, `Content-Length: ${body.length}`, 'Expect: 100-continue'))
  await answer(client)
  expect(client.received).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  client.socket.write(body)
  await answer(client, 2)
  expect(client.received).toContain('HTTP/1.1 200 ')
  expect(client.received).not.toMatch(/^connection: close/im)
  client.socket.write(head('GET', currentPath))
  await answer(client, 3)
  client.socket.destroy()
})

it.each([
  ['GET', currentPath, '401'],
  ['POST', loginPath, '400'],
  ['POST', logoutPath, '401'],
  ['DELETE', '/v1/ping', '405'],
])(
  '%s %s with a content type and without a length has no body, and the daemon waits for none',
  async (...asked) => {
    const [method, path, status] = asked
    const client = await openTls(wire.port, wire.cert)
    for (const times of [1, 2]) {
      client.socket.write(head(method, path, json))
      await answer(client, times)
    }
    expect(statusOf(client)).toBe(status)
    expect(client.closed).toBe(false)
    client.socket.destroy()
  },
)

it('an incomplete body is the fault of the client: 400 in the trail, and no error in the journal', async () => {
  // The refusals above have used up the single records of this minute.
  const own = await createWireEdge({})
  onTestFinished(() => own.stop())
  const { edge } = own
  const recorded = () => edge.database.sql.prepare('SELECT * FROM audit ORDER BY seq DESC LIMIT 1').get()
  const before = recorded()?.seq
  const client = await openTls(own.port, own.cert)
  client.socket.write(head('POST', loginPath, json, 'Content-Length: 100'))
  client.socket.write('{"us', () => client.socket.destroy())
  await waitFor(() => expect(recorded()?.seq).not.toBe(before), { timeout: 60_000, interval: 5 })
  expect(recorded()).toMatchObject({ status: 400, outcome: 'refused' })
  expect(edge.lines.filter(({ level }) => Number(level) >= 50)).toEqual([])
})

it('requests without a Host are counted too', async () => {
  const ask = async () => {
    const client = await openTls(wire.port, wire.cert)
    client.socket.write('GET /v1/edge-mgmt/settings HTTP/1.1\r\n\r\n')
    await answer(client)
    client.socket.destroy()
    return statusOf(client)
  }
  const statuses = [await ask(), await ask(), await ask()]
  expect(statuses.at(-1)).toBe('429')
  expect(statuses.filter((status) => status !== '400' && status !== '429')).toEqual([])
})

it('a body of unknown length that was read changes nothing in the reply and leaves the connection open', async () => {
  const body = JSON.stringify({ username: 'no-such-user', password: '' })
  const fieldsOf = async (...request: string[]) => {
    const client = await openTls(wire.port, wire.cert)
    client.socket.write(request.join(''))
    await answer(client)
    client.socket.destroy()
    const [fields = ''] = client.received.split('\r\n\r\n')
    return fields.replace(/^(x-request-id|date|ratelimit|audituid): .*$/gim, '$1')
  }
  const chunked = await fieldsOf(
    head('POST', loginPath, json, 'Transfer-Encoding: chunked'),
    `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  )
  expect(chunked).toMatch(/^Connection: keep-alive\r$/im)
  expect(chunked).toBe(await fieldsOf(head('POST', loginPath, json, `Content-Length: ${body.length}`), body))
})
