import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTls } from '../../support/https-server.ts'
import { currentPath, loginPath } from '../../support/test-edge.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const rate = { requestsPerSecond: 1_000, burst: 5 }
const rateLimits = {
  ...rate,
  login: rate,
  blobs: rate,
  enabled: true,
  resources: ['settings=1/1'],
  trackedKeys: 100,
}
const settingsPath = '/v1/edge-mgmt/settings'

let wire: WireEdge
let authorization: string
beforeAll(async () => {
  wire = await createWireEdge(
    { rateLimits },
    { body: { limitBytes: 65_536, minimumBytesPerSecond: 1_024, windowSeconds: 1 } },
  )
  authorization = (await wire.edge.login('alice')).access
})
afterAll(() => wire.stop())

const everyReply = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}
const ofPages = ['strict-transport-security', 'x-frame-options', 'content-security-policy']

/** What a real connection gets for these bytes: its status, the fields in their order, and the reference in the body. */
async function onTheWire(text: string) {
  const client = await openTls(wire.port, wire.cert)
  client.socket.write(text)
  await waitFor(() => expect(client.received).toContain('\r\n\r\n'), { timeout: 60_000 })
  const [head = '', body = ''] = client.received.split('\r\n\r\n')
  client.socket.destroy()
  const [statusLine = '', ...lines] = head.split('\r\n')
  const fields = lines.map((line): [string, string] => {
    const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(line) ?? []
    return [name.toLowerCase(), value]
  })
  return { status: Number(statusLine.split(' ')[1]), fields, ref: /"ref":"([^"]+)"/.exec(body)?.[1] }
}

const request = (method: string, path: string, ...fields: string[]) =>
  `${[`${method} ${path} HTTP/1.1`, 'Host: box', ...fields].join('\r\n')}\r\n\r\n`

it.each([
  ['a read', () => request('GET', currentPath, `Authorization: ${authorization}`), 200],
  ['its head', () => request('HEAD', currentPath, `Authorization: ${authorization}`), 200],
  ['a refusal before the handler', () => request('GET', currentPath), 401],
  ['a path that is not there', () => request('GET', '/v1/nothing'), 404],
  ['a method that is not there', () => request('PUT', '/v1/ping'), 405],
  ['a path that cannot be decoded', () => request('GET', '/v1/%zz'), 400],
  ['no host', () => 'GET /v1/ping HTTP/1.1\r\n\r\n', 400],
  ['two hosts', () => request('GET', '/v1/ping', 'Host: other'), 400],
  ['what is not HTTP', () => 'hello\r\n\r\n', 400],
  ['an old client', () => 'GET /v1/ping HTTP/1.0\r\n\r\n', 200],
  ['a form in JSON', () => request('POST', loginPath, 'Content-Type: application/json') + '{', 400],
  ['a large body that stays away', () => request('POST', '/v1/nothing', 'Content-Length: 900000'), 404],
  [
    'a body that comes too slowly',
    () => request('POST', loginPath, 'Content-Type: application/json', 'Content-Length: 900'),
    408,
  ],
])('%s has every header field once, and none of pages', async (_what, text, status) => {
  const reply = await onTheWire(text())
  expect(reply.status).toBe(status)
  const names = reply.fields.map(([name]) => name)
  expect(names).toEqual([...new Set(names)])
  expect(names).not.toContain('')
  expect(names.filter((name) => ofPages.includes(name))).toEqual([])
  const fields = Object.fromEntries(reply.fields)
  expect(fields).toMatchObject({ ...everyReply, 'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/) })
  if (reply.ref !== undefined) expect(fields['x-request-id']).toBe(reply.ref)
})

it('a reply has the remaining rate, and the request id that the client sent', async () => {
  const text = request('GET', settingsPath, 'X-Request-Id: find-me')
  const first = await onTheWire(text)
  expect(first.status).toBe(401)
  expect(Object.fromEntries(first.fields)).toMatchObject({
    'x-request-id': 'find-me',
    'ratelimit-policy': '"settings";q=1;w=1',
    ratelimit: '"settings";r=0;t=1',
  })
  const second = await onTheWire(text)
  expect(second.status).toBe(429)
  expect(second.fields.filter(([name]) => name === 'ratelimit')).toEqual([
    ['ratelimit', '"settings";r=0;t=1'],
  ])
  expect(second.ref).toBe('find-me')
})

it('a reply to a request without a connection has the same fields', async () => {
  const url = '/v1/ping'
  const { fields } = await onTheWire(request('GET', url, 'X-Request-Id: same'))
  const { headers } = await wire.edge.app.inject({ url, headers: { host: 'box', 'x-request-id': 'same' } })
  const ofConnection = ['date', 'connection', 'keep-alive']
  const kept = (entries: [string, unknown][]) =>
    Object.fromEntries(entries.filter(([name]) => !ofConnection.includes(name)))
  expect(kept(fields)).toEqual(kept(Object.entries(headers)))
})
