import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../../../../src/api/access.ts'
import { createHttpsServer } from '../../../../src/api/connection/https-server.ts'
import { identifyByToken } from '../../../../src/api/guard.ts'
import { createServer } from '../../../../src/api/server.ts'
import { createStates } from '../../../../src/api/states.ts'
import type { Role } from '../../../../src/base/role.ts'
import { clientFromAnywhere } from '../../../../src/base/client.ts'
import { createEventLog } from '../../../../src/cluster/events/event-log.ts'
import { createErrorLogs } from '../../../../src/cluster/events/error-logs.ts'
import { createEventList } from '../../../../src/cluster/events/event-list.ts'
import { eventRoutes } from '../../../../src/cluster/api/routes-events.ts'
import { createContinueTokens } from '../../../../src/lists/continue-token.ts'
import type { StateSource } from '../../../../src/root/room.ts'
import { openDatabase } from '../../../support/open-database.ts'
import { createRunner } from '../../../../src/system/runner.ts'
import type { TlsMaterial } from '../../../../src/system/tls-options.ts'
import { captureLog, generous, makeMaterial, openTls, type Client } from '../../../support/https-server.ts'
import { createTurningClock } from '../../../support/turning-clock.ts'
import { waitFor } from '../../../support/wait-for.ts'

const waiting = { timeout: 60_000, interval: 5 }
const path = '/v1/edge-mgmt/events/stream'

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})
const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

/** The routes over a real listener; a token is `<role> <session>`. */
async function start() {
  const { log } = captureLog()
  const database = openDatabase(':memory:', log)
  const clock = createTurningClock(Date.UTC(2026, 0, 31, 8))
  const events = createEventLog({ database, limits: { retentionDays: 90, maximum: 100_000 }, clock, log })
  const https = createHttpsServer({
    ...{ material, log, clientOf: clientFromAnywhere, timeouts: generous },
    body: { minimumBytesPerSecond: 1, windowSeconds: 60 },
    connections: { maximum: 100, maximumPerAddress: 100 },
  })
  const { app, endRequests } = createServer({
    ...{ log, bodyLimitBytes: 1_000, mode: 'airgap', stopping: new AbortController().signal },
    ...{ serverFactory: https.serverFactory, longRequestMs: 60_000, onAuthenticated: () => undefined },
    identify: identifyByToken((token): Caller => {
      const [role, sessionUid] = token.split(' ')
      return { userName: 'anna', role: role as Role, sessionUid }
    }),
  })
  const hostName = () => 'edge-1'
  const listTokens = createContinueTokens(Buffer.alloc(32, 1))
  const states = createStates(20)
  await app.register(eventRoutes, {
    ...{
      states,
      events,
      hostName,
      errorLogs: createErrorLogs({
        ...{
          hide: () => (text) => text,
          runner: createRunner(),
          clusterSince: () => 0,
          clock: { now: () => Date.now() },
        },
      }),
    },
    eventList: createEventList({
      ...{ database, events, client: () => undefined, hostName, listTokens },
      hide: () => (text) => text,
    }),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  undo.push(async () => {
    https.closeConnections()
    https.closeIdle()
    await app.close()
    https.stop()
    database.close()
  })
  return {
    ...{ events, states, endRequests },
    async open(fields = '', token = 'viewer s1', query = '') {
      const client = await openTls(port, material.cert)
      client.socket.write(
        `GET ${path}${query} HTTP/1.1\r\nHost: box\r\nAuthorization: ${token}\r\n${fields}\r\n`,
      )
      return client
    },
  }
}

const messages = ({ received }: Client) =>
  [...received.matchAll(/^data: (\{.*\})$/gm)].map(
    ([, data = '']) => (JSON.parse(data) as { message: string }).message,
  )
const has = (client: Client, ...expected: readonly string[]) =>
  waitFor(() => expect(messages(client)).toEqual(expected), waiting)

describe('the stream of events', () => {
  it('a first connection gets the events of the newest cluster, then new ones as they come', async () => {
    const { events, open } = await start()
    events.add({ clusterUid: 'c1', reason: 'Deleted', message: 'old' })
    events.add({ clusterUid: 'c2', reason: 'Accepted', message: 'one' })
    const client = await open()
    await has(client, 'one')
    events.add({ clusterUid: 'c2', reason: 'StepFailed', message: 'two', step: 's' })
    await has(client, 'one', 'two')
    expect(client.received).toMatch(/^content-type: text\/event-stream/im)
    const [, block = ''] = client.received.split('id: 3\n')
    expect(JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '')).toEqual({
      metadata: {
        ...{ uid: 'edgehostd-3', name: 'edgehostd-3', number: 3 },
        creationTimestamp: '2026-01-31T08:00:00.000Z',
      },
      involvedObject: { kind: 'Cluster', uid: 'c2' },
      relatedObject: { kind: 'spectrocluster', uid: 'c2' },
      ...{ reason: 'StepFailed', message: 'two', severity: 'Warning', step: 's', clusterUid: 'c2' },
      ...{ type: 'StepsSucceed', source: { component: 'edgehostd', host: 'edge-1' } },
    })
  })

  it('a connection with Last-Event-ID gets exactly the events after it', async () => {
    const { events, open } = await start()
    for (const message of ['one', 'two', 'three'])
      events.add({ clusterUid: 'c1', reason: 'StepProgress', message })
    await has(await open('Last-Event-ID: 2\r\n'), 'three')
    const all = await open('Last-Event-ID: 0\r\n')
    await has(all, 'one', 'two', 'three')
  })

  it('a Last-Event-ID that is no number is refused, and named', async () => {
    const { open } = await start()
    const client = await open('Last-Event-ID: abc\r\n')
    await waitFor(() => expect(client.received).toMatch(/^HTTP\/1\.1 400 /), waiting)
    expect(client.received).toMatch(/last-event-id/)
  })

  it('a stream ends with the session, with a last event', async () => {
    const { events, open, endRequests } = await start()
    const client = await open()
    await waitFor(() => expect(client.received).toContain(':\n\n'), waiting)
    endRequests(() => true)
    await waitFor(() => expect(client.closed).toBe(true), waiting)
    expect(client.received).toMatch(/event: end\ndata: \{"code":"Unauthenticated"/)
    events.add({ clusterUid: 'c1', reason: 'Accepted', message: 'late' })
    expect(client.received).not.toContain('late')
  })

  it('many thousand stored events reach a slow reader whole', async () => {
    const { events, open } = await start()
    // Some 2 MB: more than may wait for a client.
    const count = 5_000
    for (let index = 0; index < count; index += 1)
      events.add({ clusterUid: 'c1', reason: 'StepProgress', message: String(index) })
    const client = await open()
    client.socket.pause()
    await waitFor(() => expect(client.socket.readableLength).toBeGreaterThan(0), waiting)
    client.socket.resume()
    await waitFor(() => expect(client.received).toContain(`id: ${count}\n`), {
      ...waiting,
      timeout: 30_000,
    })
    expect(messages(client)).toEqual(Array.from({ length: count }, (_none, index) => String(index)))
  })
})

describe('the states in the stream of events', () => {
  const asked = '?states=true'
  /** The states of a type that a client has received. */
  const statesIn = ({ received }: Client, type: string) =>
    [...received.matchAll(/^event: (\w+)\ndata: (.*)$/gm)]
      .filter(([, event]) => event === type)
      .map(([, , data = '']) => (JSON.parse(data) as { state: unknown }).state)
  const source = (type: StateSource['type'], read: () => unknown, access: Role = 'viewer'): StateSource => ({
    ...{ type, access, paths: ['/v1/x'] },
    read,
  })

  it('a client that asks gets each state at once and when it changes, without an id, beside events with theirs', async () => {
    const { events, states, open } = await start()
    let shown: unknown = { phase: 'Provisioning' }
    states.add([source('cluster', () => shown), source('step', () => undefined)])
    events.add({ clusterUid: 'c1', reason: 'Accepted', message: 'one' })
    const client = await open('', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(client, 'cluster')).toEqual([{ phase: 'Provisioning' }]), waiting)
    await waitFor(() => expect(statesIn(client, 'step')).toEqual([null]), waiting)
    expect(client.received).toMatch(
      /^event: cluster\ndata: {"state":{"phase":"Provisioning"},"sum":"[\w-]{22}","paths":\["\/v1\/x"\]}\n\n/m,
    )
    shown = { phase: 'Running' }
    await waitFor(
      () => expect(statesIn(client, 'cluster')).toEqual([{ phase: 'Provisioning' }, { phase: 'Running' }]),
      waiting,
    )
    await waitFor(() => expect(client.received).toMatch(/^id: 1\ndata: .*"one"/m), waiting)
    expect([...client.received.matchAll(/^id: /gm)]).toHaveLength(1)
    // A connection that continues after the last event begins with the states again.
    const again = await open('Last-Event-ID: 1\r\n', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(again, 'cluster')).toEqual([{ phase: 'Running' }]), waiting)
    expect(again.received).not.toMatch(/^id: /m)
  })

  it('a change of what is behind a state is a message too', async () => {
    const { states, open } = await start()
    let behind = 1
    states.add([{ ...source('host', () => 'same'), behind: () => behind }])
    const client = await open('', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(client, 'host')).toEqual(['same']), waiting)
    behind = 2
    await waitFor(() => expect(statesIn(client, 'host')).toEqual(['same', 'same']), waiting)
  })

  it('a client that does not ask gets the bytes of events alone, and nothing is read for it', async () => {
    const { events, states, open } = await start()
    let reads = 0
    states.add([source('cluster', () => (reads += 1))])
    const client = await open()
    events.add({ clusterUid: 'c1', reason: 'Accepted', message: 'one' })
    await has(client, 'one')
    expect(client.received).not.toContain('event: ')
    expect(reads).toBe(0)
  })

  it('a caller gets the states that its role may have', async () => {
    const { states, open } = await start()
    states.add([source('host', () => 'for all'), source('network', () => 'for administrators', 'admin')])
    const [viewer, admin] = [await open('', 'viewer s1', asked), await open('', 'admin s2', asked)]
    await waitFor(() => expect(statesIn(admin, 'network')).toEqual(['for administrators']), waiting)
    await waitFor(() => expect(statesIn(viewer, 'host')).toEqual(['for all']), waiting)
    expect(viewer.received).not.toContain('network')
  })

  it('a state that cannot be read, or takes long, delays no other, and what was sent stays', async () => {
    const { states, open } = await start()
    let isBroken = false
    states.add([
      source('content', () => {
        if (isBroken) throw new Error('not mounted')
        return 'mounted'
      }),
      source('upload', () => new Promise(() => undefined)),
      source('link', () => (isBroken ? 'later' : 'first')),
    ])
    const client = await open('', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(client, 'content')).toEqual(['mounted']), waiting)
    isBroken = true
    await waitFor(() => expect(statesIn(client, 'link')).toEqual(['first', 'later']), waiting)
    expect(statesIn(client, 'content')).toEqual(['mounted'])
    expect(client.received).not.toContain('event: end')
  })

  it('a burst is one message for each reading, and nothing is read when the last client has gone', async () => {
    const { states, open } = await start()
    let reads = 0
    let value = 0
    states.add([
      source('host', () => {
        reads += 1
        return value
      }),
    ])
    const client = await open('', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(client, 'host')).toEqual([0]), waiting)
    for (; value < 1_000; value += 1);
    await waitFor(() => expect(statesIn(client, 'host')).toEqual([0, 1_000]), waiting)
    client.socket.destroy()
    await waitFor(async () => {
      const before = reads
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(reads).toBe(before)
    }, waiting)
    // The next client gets the present state, not the last one that was read.
    value = 5
    const next = await open('', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(next, 'host')).toEqual([5]), waiting)
  })

  it('a client that does not read gets the newest state when it has room, and none of those between', async () => {
    const states = createStates(5)
    let value = 0
    states.add([source('host', () => (value += 1))])
    const ended = new AbortController()
    const sent: unknown[] = []
    let room: PromiseWithResolvers<void> = Promise.withResolvers()
    const following = states.follow(
      {
        signal: ended.signal,
        send: ({ data }) => {
          sent.push((data as { state: number }).state)
          return room.promise
        },
      },
      () => true,
    )
    await waitFor(() => expect(value).toBeGreaterThan(20), waiting)
    expect(sent).toEqual([1])
    const full = room
    room = Promise.withResolvers()
    full.resolve()
    await waitFor(() => expect(sent).toHaveLength(2), waiting)
    expect(sent[1]).toBeGreaterThan(20)
    ended.abort()
    room.resolve()
    await following
  })

  it('a stream with states ends with its session, and a query that is no boolean is refused', async () => {
    const { states, open, endRequests } = await start()
    states.add([source('host', () => 1)])
    const client = await open('', 'viewer s1', asked)
    await waitFor(() => expect(statesIn(client, 'host')).toEqual([1]), waiting)
    endRequests(({ sessionUid }) => sessionUid === 's1')
    await waitFor(() => expect(client.received).toMatch(/^event: end\ndata: .*Unauthenticated/m), waiting)
    const wrong = await open('', 'viewer s2', '?states=often')
    await waitFor(() => expect(wrong.received).toMatch(/^HTTP\/1\.1 400 [^]*states/), waiting)
  })
})
