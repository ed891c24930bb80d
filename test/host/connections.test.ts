import type { ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { limitConnections, type Connections } from '../../src/api/connection/connections.ts'
import type { TlsMaterial } from '../../src/api/tls/options.ts'
import {
  captureLog,
  makeMaterial,
  openTcp,
  openTls,
  startServer,
  type Client,
} from '../support/https-server.ts'

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

const caller = { userName: 'alice', role: 'admin', sessionUid: 's1' } as const

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})

let server: Server
let port: number
let stop: () => Promise<void>
let connections: Connections
let logged: ReturnType<typeof captureLog>
/** Responses of `/wait`, which the test ends. */
let waiting: ServerResponse[]

beforeEach(async () => {
  waiting = []
  logged = captureLog()
  ;({ server, port, stop } = await startServer(material, (request, response) => {
    if (request.url === '/login') connections.markAuthenticated(request.socket, caller)
    if (request.url === '/wait') waiting.push(response)
    else response.end('done')
  }))
  connections = limitConnections(server, { maximum: 5, maximumPerAddress: 3, log: logged.log })
})
afterEach(async () => {
  connections.stop()
  await stop()
})

async function login(client: Client): Promise<void> {
  client.socket.write(ask('/login'))
  await vi.waitFor(() => expect(client.received).toContain('done'))
}

async function hold(client: Client): Promise<ServerResponse> {
  const before = waiting.length
  client.socket.write(ask('/wait'))
  await vi.waitFor(() => expect(waiting).toHaveLength(before + 1))
  return waiting.at(-1)!
}

const states = (...clients: Client[]) => clients.map(({ closed }) => closed)
const closes = (client: Client) => vi.waitFor(() => expect(client.closed).toBe(true))

describe('limitConnections', () => {
  it('counts connections from the accept to the close', async () => {
    const raw = await openTcp(port)
    const tls = await openTls(port, material.cert)
    await vi.waitFor(() => expect(connections.count()).toBe(2))
    raw.socket.destroy()
    tls.socket.destroy()
    await vi.waitFor(() => expect(connections.count()).toBe(0))
  })

  it('closes the longest idle connection of an address for a new one at its cap', async () => {
    const clients = [1, 2, 3].map(() => openTls(port, material.cert))
    const [one, two, three] = (await Promise.all(clients)) as [Client, Client, Client]
    // Whoever had a request is the last to have become idle.
    one.socket.write(ask('/'))
    await vi.waitFor(() => expect(one.received).toContain('done'))
    const four = await openTls(port, material.cert)
    await vi.waitFor(() => expect(states(two, three).filter(Boolean)).toHaveLength(1))
    expect(states(one, four)).toEqual([false, false])
    expect(connections.count()).toBe(3)
  })

  it('closes one that has not even begun its handshake', async () => {
    const raw = await openTcp(port)
    const others = [await openTls(port, material.cert), await openTls(port, material.cert)]
    const fresh = await openTls(port, material.cert)
    await closes(raw)
    expect(states(...others, fresh)).toEqual([false, false, false])
  })

  it('spares connections with a request in flight until it has ended', async () => {
    const busy = await openTls(port, material.cert)
    const response = await hold(busy)
    const idle = [await openTls(port, material.cert), await openTls(port, material.cert)] as const
    await openTls(port, material.cert)
    await closes(idle[0])
    await openTls(port, material.cert)
    await closes(idle[1])
    expect(busy.closed).toBe(false)
    response.end('late')
    await vi.waitFor(() => expect(busy.received).toContain('late'))
    await openTls(port, material.cert)
    await openTls(port, material.cert)
    await openTls(port, material.cert)
    await closes(busy)
  })

  it('counts pipelined requests one by one', async () => {
    const busy = await openTls(port, material.cert)
    busy.socket.write(ask('/wait') + ask('/wait'))
    await vi.waitFor(() => expect(waiting).toHaveLength(2))
    waiting[0]!.end('first')
    await vi.waitFor(() => expect(busy.received).toContain('first'))
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    expect(busy.closed).toBe(false)
  })

  it('spares connections that brought a valid token', async () => {
    const known = await openTls(port, material.cert)
    await login(known)
    for (let i = 0; i < 5; i++) await openTls(port, material.cert)
    expect(known.closed).toBe(false)
    expect(connections.count()).toBe(3)
  })

  it('closes a connection again whose session has ended, idle or busy, and spares it after another login', async () => {
    const idle = await openTls(port, material.cert)
    await login(idle)
    connections.forget(({ sessionUid }) => sessionUid === 's2')
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    expect(idle.closed).toBe(false)
    const busy = await openTls(port, material.cert)
    await login(busy)
    const response = await hold(busy)
    connections.forget(({ sessionUid }) => sessionUid === 's1')
    await openTls(port, material.cert)
    await openTls(port, material.cert)
    await closes(idle)
    expect(busy.closed).toBe(false)
    response.end('late')
    await vi.waitFor(() => expect(busy.received).toContain('late'))
    await login(busy)
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    expect(busy.closed).toBe(false)
    connections.forget(() => true)
    for (let i = 0; i < 3; i++) await openTls(port, material.cert)
    await closes(busy)
  })

  it('closes the new one when every other is busy or known', async () => {
    const clients = [
      await openTls(port, material.cert),
      await openTls(port, material.cert),
      await openTls(port, material.cert),
    ]
    await login(clients[0]!)
    await login(clients[1]!)
    await hold(clients[2]!)
    const fresh = await openTls(port, material.cert)
    await closes(fresh)
    expect(states(...clients)).toEqual([false, false, false])
    expect(connections.count()).toBe(3)
    // The place is free again once somebody goes.
    clients[0]!.socket.destroy()
    await vi.waitFor(() => expect(connections.count()).toBe(2))
    const next = await openTls(port, material.cert)
    expect(next.closed).toBe(false)
  })

  it('leaves other addresses alone when one is at its cap', async () => {
    const other = await openTls(port, material.cert, '127.0.0.2')
    for (let i = 0; i < 6; i++) await openTls(port, material.cert)
    expect(other.closed).toBe(false)
    expect(connections.count()).toBe(4)
  })

  it('closes the longest idle connection of all at the cap in all', async () => {
    const oldest = await openTls(port, material.cert, '127.0.0.9')
    for (const end of [1, 1, 2, 2]) await openTls(port, material.cert, `127.0.0.${end}`)
    expect(connections.count()).toBe(5)
    const fresh = await openTls(port, material.cert, '127.0.0.3')
    await closes(oldest)
    expect(fresh.closed).toBe(false)
    expect(connections.count()).toBe(5)
  })

  it('closes the oldest request without a login, of the address that has most, when nobody is idle', async () => {
    const known = await openTls(port, material.cert, '127.0.0.2')
    await login(known)
    const lone = await openTls(port, material.cert, '127.0.0.3')
    await hold(lone)
    const many = []
    for (let i = 0; i < 3; i++) {
      const client = await openTls(port, material.cert)
      await hold(client)
      many.push(client)
    }
    const fresh = await openTls(port, material.cert, '127.0.0.4')
    await closes(many[0]!)
    await login(fresh)
    expect(states(known, lone, many[1]!, many[2]!, fresh)).toEqual([false, false, false, false, false])
    // An answer in the end makes it idle again, and then it goes first.
    waiting[0]!.end('late')
    await vi.waitFor(() => expect(lone.received).toContain('late'))
    await login(await openTls(port, material.cert, '127.0.0.5'))
    await closes(lone)
    expect(states(many[1]!, many[2]!)).toEqual([false, false])
  })

  it('ends, when asked to, every connection without a request in flight', async () => {
    const raw = await openTcp(port)
    const silent = await openTls(port, material.cert, '127.0.0.2')
    const half = await openTls(port, material.cert, '127.0.0.2')
    half.socket.write('GET / HTTP/1.1\r\nHost')
    const known = await openTls(port, material.cert, '127.0.0.3')
    await login(known)
    const busy = await openTls(port, material.cert, '127.0.0.4')
    const response = await hold(busy)
    connections.closeIdle()
    await vi.waitFor(() => expect(states(raw, silent, half, known)).not.toContain(false))
    expect(busy.closed).toBe(false)
    response.end('late')
    await vi.waitFor(() => expect(busy.received).toContain('late'))
  })

  it('lets a known client in while a flood of raw connections comes', async () => {
    const known = await openTls(port, material.cert)
    await login(known)
    const flood = await Promise.all(Array.from({ length: 300 }, () => openTcp(port)))
    known.received = ''
    await login(known)
    expect(connections.count()).toBeLessThanOrEqual(3)
    await vi.waitFor(() => expect(flood.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(2))
  })

  it('logs a flood in two lines with its numbers', async () => {
    const flood = await Promise.all(Array.from({ length: 40 }, () => openTcp(port)))
    await vi.waitFor(() => expect(flood.filter(({ closed }) => closed)).toHaveLength(37), { timeout: 5_000 })
    connections.stop()
    const warnings = logged.lines.filter(({ level }) => level === 40)
    expect(warnings.map(({ evicted }) => evicted)).toEqual([1, 36])
  })

  it('survives handshakes that fail, and says so at debug only', async () => {
    for (const bytes of [
      'GET / HTTP/1.0\r\n\r\n',
      '\u0016\u0003\u0001\u0000\u0002\u0001\u0000',
      '\u0000'.repeat(2000),
    ]) {
      const client = await openTcp(port)
      client.socket.end(bytes)
      await closes(client)
    }
    const client = await openTls(port, material.cert)
    await login(client)
    connections.stop()
    expect(logged.lines.length).toBeGreaterThan(0)
    expect(logged.lines.every(({ level }) => level === 20)).toBe(true)
  })
})
