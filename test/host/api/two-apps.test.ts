import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { apiReplies, pageHeaders } from '../../../src/api/replies.ts'
import { createServer } from '../../../src/api/server.ts'
import { captureLog, makeMaterial, openTls } from '../../support/https-server.ts'
import { blob, startRegistry } from '../../support/registry-app.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const rate = { requestsPerSecond: 1, burst: 50 }
const rateLimits = { ...rate, login: rate, blobs: rate, enabled: true, resources: [], trackedKeys: 100 }

let api: WireEdge
let registry: Awaited<ReturnType<typeof startRegistry>>
let ca: string
let agent: Agent
beforeEach(async () => {
  const material = await makeMaterial()
  ca = material.cert
  agent = new Agent({ keepAlive: true, maxSockets: 2 })
  api = await createWireEdge({ rateLimits })
  registry = await startRegistry(material, {
    connections: { maximum: 100, maximumPerAddress: 5 },
    body: { minimumBytesPerSecond: 1_024, windowSeconds: 1 },
  })
})
afterEach(async () => {
  agent.destroy()
  await Promise.all([api.stop(), registry.stop()])
})

async function ask(to: 'api' | 'registry', method: string, path: string) {
  const server = to === 'api' ? { port: api.port, ca: api.cert } : { port: registry.port, ca }
  const options: RequestOptions = { ...server, method, path, agent, host: '127.0.0.1' }
  const sent = httpsRequest(options).end()
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: reply.statusCode, headers: reply.headers, body: await text(reply) }
}

const path = '/v2/factory/line-7/app/blobs/sha256:0123'

it('200 blobs are read from one address at once, while the limits of the API beside it hold', async () => {
  const blobs = await Promise.all(Array.from({ length: 200 }, () => ask('registry', 'GET', path)))
  expect(blobs.filter(({ status, body }) => status !== 200 || body !== blob)).toEqual([])
  const pings = await Promise.all(Array.from({ length: 60 }, () => ask('api', 'GET', '/v1/users/current')))
  const count = (wanted: number) => pings.filter(({ status }) => status === wanted).length
  expect(count(401)).toBeGreaterThanOrEqual(50)
  expect(count(429)).toBeGreaterThan(0)
  expect(count(401) + count(429)).toBe(60)
})

it('a wildcard parameter may contain slashes, encoded or not, and the other one may not', async () => {
  const { headers } = await ask('registry', 'GET', path)
  expect(headers).toMatchObject({
    repository: 'factory/line-7/app',
    'docker-content-digest': 'sha256:0123',
  })
  const encoded = await ask('registry', 'GET', '/v2/factory%2Fline-7/app/blobs/sha256:0123?x=/1')
  expect(encoded.headers.repository).toBe('factory/line-7/app')
  const upload = await ask('registry', 'PUT', '/v2/factory/app/blobs/uploads/7')
  expect(JSON.parse(upload.body)).toEqual({ name: 'factory/app', id: '7' })
})

it('HEAD has the header fields of GET and no body', async () => {
  const { status, headers, body } = await ask('registry', 'HEAD', path)
  expect(status).toBe(200)
  expect(headers).toMatchObject({ 'content-length': String(blob.length), repository: 'factory/line-7/app' })
  expect(body).toBe('')
  expect((await ask('registry', 'HEAD', '/v2/factory/nothing')).status).toBe(404)
})

it.each([
  ['DELETE', path, 405, 'METHODNOTALLOWED', 'GET, HEAD'],
  ['GET', '/v2/factory/app/blobs/uploads/7', 405, 'METHODNOTALLOWED', 'PUT'],
  ['GET', '/v2/factory/app/nothing', 404, 'NOTFOUND', undefined],
  ['GET', '/v2/factory/app/blobs/', 404, 'NOTFOUND', undefined],
  ['GET', '/v2/%zz/blobs/1', 400, 'BADREQUEST', undefined],
])('%s %s is %i, in the form of this app', async (method, url, status, code, allow) => {
  const reply = await ask('registry', method, url)
  expect(reply.status).toBe(status)
  expect(JSON.parse(reply.body)).toMatchObject({ errors: [{ code }] })
  expect(reply.headers['content-type']).toBe('application/json')
  expect(reply.headers.allow?.split(', ').sort().join(', ')).toBe(allow)
})

it('each app has its own header fields, and counts its own requests', async () => {
  const [ofBlob, ofError, ofApi] = await Promise.all([
    ask('registry', 'GET', path),
    ask('registry', 'GET', '/v2/nothing'),
    ask('api', 'GET', '/v1/nothing'),
  ])
  const fields = ['cache-control', 'x-content-type-options', 'docker-distribution-api-version']
  const of = ({ headers }: { headers: Record<string, unknown> }) => fields.map((name) => headers[name])
  expect(of(ofBlob)).toEqual(['public, max-age=31536000, immutable', undefined, 'registry/2.0'])
  expect(of(ofError)).toEqual([undefined, undefined, 'registry/2.0'])
  expect(of(ofApi)).toEqual(['no-store', 'nosniff', undefined])
  expect(JSON.parse(ofApi.body)).toMatchObject({ code: 'NotFound', ref: ofApi.headers['x-request-id'] })
  expect(ofBlob.headers).not.toHaveProperty('content-security-policy')
  const counted = registry.requests.figures().map(({ route, method }) => `${method} ${route}`)
  expect(counted.sort()).toEqual(['GET /v2/:name/blobs/:digest', 'other none'])
})

it.each([
  ['what is not even HTTP', 'hello\r\n\r\n', 'BADREQUEST'],
  [
    'a body that comes too slowly',
    'PUT /v2/a/blobs/uploads/7 HTTP/1.1\r\nHost: box\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n',
    'REQUESTTIMEOUT',
  ],
])('%s is refused in the form of the app', async (_what, sent, code) => {
  const client = await openTls(registry.port, ca)
  client.socket.write(sent)
  await waitFor(() => expect(client.closed).toBe(true), { timeout: 60_000 })
  expect(client.received).toContain(`{"errors":[{"code":"${code}"`)
})

it('each listener has its own rules for connections', async () => {
  const open = (port: number, cert: string) =>
    Promise.all(Array.from({ length: 8 }, () => openTls(port, cert)))
  const [ofApi, ofRegistry] = [await open(api.port, api.cert), await open(registry.port, ca)]
  await waitFor(() => expect(ofRegistry.filter(({ closed }) => closed)).toHaveLength(3), {
    timeout: 60_000,
  })
  expect(ofApi.filter(({ closed }) => closed)).toEqual([])
  for (const { socket } of [...ofApi, ...ofRegistry]) socket.destroy()
  expect(registry.lines.map(({ msg }) => msg)).toContainEqual(
    expect.stringContaining(`sport = :${registry.port} `),
  )
})

it("an app behind a path of another app's listener serves pages, with the policy for pages", async () => {
  const { log } = captureLog()
  const common = {
    ...{ log, bodyLimitBytes: 1_000, mode: 'airgap' as const },
    ...{ identify: () => undefined, onAuthenticated: () => undefined },
  }
  const headers = { ...apiReplies.headers, ...pageHeaders }
  const { app: pages } = createServer({ ...common, replies: { ...apiReplies, headers } })
  pages.get('/console/', { config: { access: 'open' } }, async (_request, reply) =>
    reply.type('text/html').send('<!doctype html>'),
  )
  await pages.ready()
  const { app } = createServer({
    ...common,
    serverFactory: (handler) =>
      createHttpServer((request, response) => {
        if (request.url?.startsWith('/console/') === true) pages.routing(request, response)
        else handler(request, response)
      }),
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const fieldsAt = async (path: string) => Object.fromEntries((await fetch(url + path)).headers)
  expect(await fieldsAt('/console/')).toMatchObject({
    ...pageHeaders,
    'content-type': 'text/html',
  })
  expect(await fieldsAt('/console/nothing')).toMatchObject(pageHeaders)
  expect(await fieldsAt('/v1/nothing')).not.toHaveProperty('content-security-policy')
  await Promise.all([app.close(), pages.close()])
})
