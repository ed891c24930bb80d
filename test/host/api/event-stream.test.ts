import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Caller } from '../../../src/api/access.ts'
import type { Role } from '../../../src/base/role.ts'
import { createHttpsServer } from '../../../src/api/connection/https-server.ts'
import type { Timeouts } from '../../../src/api/connection/fed-server.ts'
import { sendEvents, type EventStream } from '../../../src/api/event-stream.ts'
import { identifyByToken } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import { clientFromAnywhere } from '../../../src/base/client.ts'
import type { TlsMaterial } from '../../../src/system/tls-options.ts'
import { captureLog, generous, makeMaterial, openTls, type Client } from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const waiting = { timeout: 60_000, interval: 5 }

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})
const undo: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

/** A stream that lasts until its reply ends. */
const untilEnd = ({ signal }: EventStream) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))

/** An app with a stream over a real listener; a token is `<role> <session>`. */
async function start(
  source: (stream: EventStream) => Promise<void>,
  options: { timeouts?: Timeouts; longRequestMs?: number } = {},
) {
  const { log, lines } = captureLog()
  const https = createHttpsServer({
    ...{ material, log, clientOf: clientFromAnywhere, timeouts: options.timeouts ?? generous },
    body: { minimumBytesPerSecond: 1, windowSeconds: 60 },
    connections: { maximum: 100, maximumPerAddress: 100 },
  })
  const stop = new AbortController()
  const { app, endRequests } = createServer({
    ...{ log, bodyLimitBytes: 1_000, mode: 'airgap', stopping: stop.signal },
    serverFactory: https.serverFactory,
    longRequestMs: options.longRequestMs ?? 60_000,
    identify: identifyByToken((token): Caller => {
      const [role, sessionUid] = token.split(' ')
      return { userName: 'anna', role: role as Role, sessionUid }
    }),
    onAuthenticated: () => undefined,
  })
  const streams: EventStream[] = []
  app.get('/v1/events', { config: { access: 'viewer' } }, (request, reply) =>
    sendEvents(request, reply, (stream) => {
      streams.push(stream)
      return source(stream)
    }),
  )
  app.get('/v1/silent', { config: { access: 'viewer' } }, (_request, reply) => {
    reply.hijack()
    reply.raw.write('begun')
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  undo.push(async () => {
    https.closeConnections()
    https.closeIdle()
    await app.close()
    https.stop()
  })
  return {
    ...{ app, streams, lines, endRequests, stop },
    async open(path = '/v1/events', { method = 'GET', token = 'viewer s1', fields = '' } = {}) {
      const client = await openTls(port, material.cert)
      client.socket.write(
        `${method} ${path} HTTP/1.1\r\nHost: box\r\nAuthorization: ${token}\r\n${fields}\r\n`,
      )
      return client
    },
  }
}

const says = (client: Client, text: string | RegExp) =>
  waitFor(() => expect(client.received).toMatch(text), waiting)
const closes = (client: Client) => waitFor(() => expect(client.closed).toBe(true), waiting)

/** The stream ended properly: the last chunk arrived, and no reset. */
async function endsInPeace(client: Client, last: RegExp) {
  const failed = vi.fn()
  client.socket.on('error', failed)
  await closes(client)
  expect(client.received).toMatch(last)
  expect(client.received.endsWith('\r\n0\r\n\r\n')).toBe(true)
  expect(failed).not.toHaveBeenCalled()
}

describe('a stream of events', () => {
  it('a stream outlives the timeout of a stalled connection by its heartbeats', async () => {
    const edge = await start(untilEnd, { timeouts: { ...generous, stalledMs: 500 } })
    const silent = await edge.open('/v1/silent')
    const client = await edge.open()
    await says(client, /^HTTP\/1\.1 200 OK\r\n[^]*content-type: text\/event-stream\r\n/i)
    await closes(silent)
    const beats = () => client.received.split(':\n\n').length - 1
    await waitFor(() => expect(beats()).toBeGreaterThan(9), waiting)
    expect(client.closed).toBe(false)
    await edge.streams[0]!.send({ id: '7', event: 'step', data: { name: 'a\nb' } })
    await says(client, 'id: 7\nevent: step\ndata: {"name":"a\\nb"}\n\n')
  })

  it('a stream ends with its source', async () => {
    const edge = await start(({ send }) => send({ data: 1 }))
    await endsInPeace(await edge.open(), /data: 1\n\n/)
  })

  it('a stream ends at once with a last event when the daemon stops, and no new one begins', async () => {
    const edge = await start(untilEnd)
    const client = await edge.open()
    await says(client, ':\n\n')
    edge.stop.abort()
    await endsInPeace(
      client,
      /event: end\ndata: \{"code":"NotReady","message":"the daemon stops; connect again"/,
    )
    const late = await edge.open()
    await says(late, /^HTTP\/1\.1 503 /)
    expect(edge.streams.map(({ signal }) => signal.aborted)).toEqual([true])
    late.socket.destroy()
  })

  it.each([
    ['ends with the session of its caller', 60_000],
    ['ends in the same way where it has lasted longer than other requests may', 0],
  ])('a stream %s, with a last event', async (_title, longRequestMs) => {
    const edge = await start(untilEnd, { longRequestMs })
    const [client, other] = [await edge.open(), await edge.open('/v1/events', { token: 'viewer s2' })]
    await Promise.all([says(client, ':\n\n'), says(other, ':\n\n')])
    edge.endRequests(({ sessionUid }) => sessionUid === 's1')
    await endsInPeace(client, /event: end\ndata: \{"code":"Unauthenticated"/)
    expect(other.closed).toBe(false)
  })

  it('a stream ends when the session loses the role', async () => {
    const edge = await start(untilEnd)
    const client = await edge.open('/v1/events', { token: 'admin s1' })
    await says(client, ':\n\n')
    edge.endRequests(({ sessionUid, role }) => sessionUid === 's1' && role === 'admin')
    await endsInPeace(client, /event: end\ndata: \{"code":"Unauthenticated"/)
  })

  it('a stream whose source fails reports it in the last event, and in the journal', async () => {
    const edge = await start(async () => {
      await turn()
      throw new Error('of the source')
    })
    await endsInPeace(await edge.open(), /event: end\ndata: \{"code":"Internal"/)
    expect(edge.lines).toContainEqual(expect.objectContaining({ level: 50, msg: 'an event stream failed' }))
  })

  it('the source of a stream gets the id of the last event that the client has received', async () => {
    const edge = await start(async ({ send, lastEventId }) => {
      await send({ data: { after: lastEventId ?? 'nothing' } })
    })
    const [again, first] = [
      await edge.open('/v1/events', { fields: 'Last-Event-ID: 41\r\n' }),
      await edge.open(),
    ]
    await says(again, /"after":"41"/)
    await says(first, /"after":"nothing"/)
  })

  it('the source of a stream is notified when the client disconnects', async () => {
    const edge = await start(untilEnd)
    const client = await edge.open()
    await says(client, ':\n\n')
    client.socket.destroy()
    await waitFor(() => expect(edge.streams[0]?.signal.aborted).toBe(true), waiting)
  })

  it('HEAD of a stream starts no source', async () => {
    const edge = await start(untilEnd)
    const client = await edge.open('/v1/events', { method: 'HEAD' })
    await says(client, /^HTTP\/1\.1 200 OK\r\n[^]*content-type: text\/event-stream\r\n[^]*\r\n\r\n$/i)
    expect(edge.streams).toEqual([])
  })
})

describe('a client that does not read', () => {
  const data = 'x'.repeat(65_536)

  it('a client that does not read loses its connection when too much waits for it', async () => {
    let sent = 0
    const edge = await start(async ({ send, signal }) => {
      // Like a source of real events, which cannot be paused.
      for (; !signal.aborted && sent < 10_000; sent += 1) {
        void send({ data })
        await turn()
      }
    })
    const client = await edge.open()
    client.socket.pause()
    await waitFor(() => expect(edge.streams[0]?.signal.aborted).toBe(true), { timeout: 20_000 })
    // The kernel buffers some megabytes on both sides, the daemon one.
    expect(sent).toBeLessThan(320)
    client.socket.destroy()
  })

  it('a client that reads late holds up a source that waits for room, and gets all events', async () => {
    const events = 640
    let sent = 0
    const edge = await start(async ({ send }) => {
      for (; sent < events; sent += 1) await send({ id: String(sent), data })
    })
    const client = await edge.open()
    client.socket.pause()
    let before = -1
    await waitFor(
      () => {
        const isHeldUp = sent > 0 && sent === before
        before = sent
        expect(isHeldUp).toBe(true)
      },
      { timeout: 60_000, interval: 200 },
    )
    expect(sent).toBeLessThan(320)
    client.socket.resume()
    await endsInPeace(client, /id: 639\n/)
    expect(client.received.match(/^id: \d+$/gm)).toHaveLength(events)
  })
})
