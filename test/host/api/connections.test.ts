import type { ServerResponse } from 'node:http'
import type { FedServer } from '../../../src/api/connection/fed-server.ts'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../../../src/api/access.ts'
import { limitConnections, type Connections } from '../../../src/api/connection/connections.ts'
import { canonicalAddress } from '../../../src/base/address.ts'
import { networkFactor, type ClientOf } from '../../../src/base/client.ts'
import type { TlsMaterial } from '../../../src/system/tls-options.ts'
import {
  captureLog,
  makeMaterial,
  openTcp,
  openTls,
  startServer,
  type Client,
} from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

const callerOf = (userName: string): Caller => ({ userName, role: 'admin', sessionUid: 's1' })
// Clients of a test are all on this host.
const byAddress: ClientOf = (address) => ({ name: canonicalAddress(address), network: undefined })

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})

let server: FedServer
let port: number
let stop: () => Promise<void>
let connections: Connections
let logged: ReturnType<typeof captureLog>
/** The user whose token `/login` has. */
let user: string
/** Responses of `/wait`, which the test ends. */
let waiting: ServerResponse[]

beforeEach(async () => {
  waiting = []
  logged = captureLog()
  ;({ server, port, stop } = await startServer(material, (request, response) => {
    if (request.url === '/login') connections.markAuthenticated(request.socket, callerOf(user), response)
    if (request.url === '/wait') waiting.push(response)
    else response.end('done')
  }))
  user = 'alice'
  connections = limitConnections(server, {
    ...{ maximum: 5, maximumPerAddress: 3, clientOf: byAddress, log: logged.log },
  })
})
afterEach(async () => {
  connections.stop()
  await stop()
})

async function login(client: Client): Promise<void> {
  client.socket.write(ask('/login'))
  await waitFor(() => expect(client.received).toContain('done'))
}

async function hold(client: Client): Promise<ServerResponse> {
  const before = waiting.length
  client.socket.write(ask('/wait'))
  await waitFor(() => expect(waiting).toHaveLength(before + 1))
  return waiting.at(-1)!
}

const states = (...clients: Client[]) => clients.map(({ closed }) => closed)
const closes = (client: Client) => waitFor(() => expect(client.closed).toBe(true))

describe('limitConnections', () => {
  it('a connection counts from the accept to the close', async () => {
    const raw = await openTcp(port)
    const tls = await openTls(port, material.cert)
    await waitFor(() => expect(connections.count()).toBe(2))
    raw.socket.destroy()
    tls.socket.destroy()
    await waitFor(() => expect(connections.count()).toBe(0))
  })

  it('a new connection of an address at its cap closes the one idle for longest', async () => {
    const clients = [1, 2, 3].map(() => openTls(port, material.cert))
    const [one, two, three] = (await Promise.all(clients)) as [Client, Client, Client]
    // The connection with the request became idle last.
    one.socket.write(ask('/'))
    await waitFor(() => expect(one.received).toContain('done'))
    const four = await openTls(port, material.cert)
    await waitFor(() => expect(states(two, three).filter(Boolean)).toHaveLength(1))
    expect(states(one, four)).toEqual([false, false])
    expect(connections.count()).toBe(3)
  })

  it('connections of a trusted proxy have only the limit of all connections, and stay those of the proxy', async () => {
    connections.stop()
    connections = limitConnections(server, {
      ...{ maximum: 5, maximumPerAddress: 3, clientOf: byAddress, log: logged.log },
      isProxy: (address) => address === '127.0.0.1' || address === '::1',
    })
    const clients: Client[] = []
    for (let i = 0; i < 5; i++) clients.push(await openTls(port, material.cert))
    expect(states(...clients)).toEqual([false, false, false, false, false])
    // Many users, one after the other, on one connection: it counts for none of them.
    for (user of ['alice', 'bob']) {
      clients[0]!.received = ''
      await login(clients[0]!)
    }
    const busy = clients[1]!
    await hold(busy)
    // The others are idle, the one of a user the shortest.
    for (let i = 0; i < 3; i++) await openTls(port, material.cert)
    await waitFor(() => expect(states(...clients)).toEqual([false, false, true, true, true]))
    await openTls(port, material.cert)
    await closes(clients[0]!)
    expect(busy.closed).toBe(false)
    expect(connections.count()).toBe(5)
  })

  it('a connection without a handshake is closed for a new one', async () => {
    const raw = await openTcp(port)
    const others = [await openTls(port, material.cert), await openTls(port, material.cert)]
    const fresh = await openTls(port, material.cert)
    await closes(raw)
    expect(states(...others, fresh)).toEqual([false, false, false])
  })

  it('a connection with a request in flight is not closed for a new one until the request has ended', async () => {
    const busy = await openTls(port, material.cert)
    const response = await hold(busy)
    const idle = [await openTls(port, material.cert), await openTls(port, material.cert)] as const
    await openTls(port, material.cert)
    await closes(idle[0])
    await openTls(port, material.cert)
    await closes(idle[1])
    expect(busy.closed).toBe(false)
    response.end('late')
    await waitFor(() => expect(busy.received).toContain('late'))
    await openTls(port, material.cert)
    await openTls(port, material.cert)
    await openTls(port, material.cert)
    await closes(busy)
  })

  it('pipelined requests are counted one by one', async () => {
    const busy = await openTls(port, material.cert)
    busy.socket.write(ask('/wait') + ask('/wait'))
    await waitFor(() => expect(waiting).toHaveLength(2))
    waiting[0]!.end('first')
    await waitFor(() => expect(busy.received).toContain('first'))
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    expect(busy.closed).toBe(false)
  })

  it('a connection with a valid token is not closed for a new one', async () => {
    const known = await openTls(port, material.cert)
    await login(known)
    for (let i = 0; i < 5; i++) await openTls(port, material.cert)
    expect(known.closed).toBe(false)
    // A logged-in connection no longer counts by its address.
    expect(connections.count()).toBe(4)
  })

  it('a connection whose session has ended, idle or busy, may be closed for a new one until another login', async () => {
    const idle = await openTls(port, material.cert)
    await login(idle)
    connections.markUnauthenticated(({ sessionUid }) => sessionUid === 's2')
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    expect(idle.closed).toBe(false)
    const busy = await openTls(port, material.cert)
    await login(busy)
    const response = await hold(busy)
    connections.markUnauthenticated(({ sessionUid }) => sessionUid === 's1')
    // Both count by their address again, after the two that have been idle for longer.
    for (let i = 0; i < 3; i++) await openTls(port, material.cert)
    await closes(idle)
    expect(busy.closed).toBe(false)
    response.end('late')
    await waitFor(() => expect(busy.received).toContain('late'))
    await login(busy)
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    expect(busy.closed).toBe(false)
    connections.markUnauthenticated(() => true)
    for (let i = 0; i < 4; i++) await openTls(port, material.cert)
    await closes(busy)
  })

  it('a new connection is closed when every other one of its address is busy', async () => {
    const known = await openTls(port, material.cert)
    await login(known)
    const clients = []
    for (let i = 0; i < 3; i++) {
      const client = await openTls(port, material.cert)
      await hold(client)
      clients.push(client)
    }
    const fresh = await openTls(port, material.cert)
    await closes(fresh)
    expect(states(known, ...clients)).toEqual([false, false, false, false])
    expect(connections.count()).toBe(4)
    // A closed connection makes room for another one.
    clients[0]!.socket.destroy()
    await waitFor(() => expect(connections.count()).toBe(3))
    const next = await openTls(port, material.cert)
    expect(next.closed).toBe(false)
  })

  it('an address at its cap does not affect connections of other addresses', async () => {
    const other = await openTls(port, material.cert, '127.0.0.2')
    for (let i = 0; i < 6; i++) await openTls(port, material.cert)
    expect(other.closed).toBe(false)
    expect(connections.count()).toBe(4)
  })

  it('at the total cap the connection idle for longest is closed', async () => {
    const oldest = await openTls(port, material.cert, '127.0.0.9')
    for (const end of [1, 1, 2, 2]) await openTls(port, material.cert, `127.0.0.${end}`)
    expect(connections.count()).toBe(5)
    const fresh = await openTls(port, material.cert, '127.0.0.3')
    await closes(oldest)
    expect(fresh.closed).toBe(false)
    expect(connections.count()).toBe(5)
  })

  it('at the total cap without idle connections, the oldest request without a login of the busiest address is closed', async () => {
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
    // A complete reply makes it idle again, and then it is closed first.
    waiting[0]!.end('late')
    await waitFor(() => expect(lone.received).toContain('late'))
    await login(await openTls(port, material.cert, '127.0.0.5'))
    await closes(lone)
    expect(states(many[1]!, many[2]!)).toEqual([false, false])
  })

  it('closeIdle closes every connection without a request in flight, and the others after their reply', async () => {
    const raw = await openTcp(port)
    const silent = await openTls(port, material.cert, '127.0.0.2')
    const half = await openTls(port, material.cert, '127.0.0.2')
    half.socket.write('GET / HTTP/1.1\r\nHost')
    const known = await openTls(port, material.cert, '127.0.0.3')
    await login(known)
    const busy = await openTls(port, material.cert, '127.0.0.4')
    const response = await hold(busy)
    connections.closeIdle()
    await waitFor(() => expect(states(raw, silent, half, known)).not.toContain(false))
    expect(busy.closed).toBe(false)
    response.end('late')
    await closes(busy)
    expect(busy.received).toContain('late')
  })

  it('a logged-in client can connect during a flood of raw connections', async () => {
    const known = await openTls(port, material.cert)
    await login(known)
    const flood = await Promise.all(Array.from({ length: 300 }, () => openTcp(port)))
    known.received = ''
    await login(known)
    expect(connections.count()).toBeLessThanOrEqual(4)
    // The clients of this test learn it one by one, which takes longer on a busy machine.
    await waitFor(() => expect(flood.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(3), {
      timeout: 60_000,
    })
  })

  it('a flood is two log lines with its numbers', async () => {
    const flood = await Promise.all(Array.from({ length: 40 }, () => openTcp(port)))
    await waitFor(() => expect(flood.filter(({ closed }) => closed)).toHaveLength(37), { timeout: 60_000 })
    connections.stop()
    const warnings = logged.lines.filter(({ level }) => level === 40)
    expect(warnings.map(({ evicted }) => evicted)).toEqual([1, 36])
  })

  it('a failed handshake does no harm, and is logged at debug only', async () => {
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

describe('connections of a user', () => {
  it('connections of a user do not count for their address', async () => {
    for (let i = 0; i < 3; i++) await login(await openTls(port, material.cert))
    const others = []
    for (let i = 0; i < 2; i++) {
      const client = await openTls(port, material.cert)
      await hold(client)
      others.push(client)
    }
    expect(states(...others)).toEqual([false, false])
    expect(connections.count()).toBe(5)
  })

  it('connections up to the cap of a user are not closed, from any address; one more may be', async () => {
    const known = []
    for (const end of [1, 2, 3]) {
      const client = await openTls(port, material.cert, `127.0.0.${end}`)
      await login(client)
      known.push(client)
    }
    const surplus = await openTls(port, material.cert, '127.0.0.4')
    await login(surplus)
    user = 'bob'
    const other = await openTls(port, material.cert, '127.0.0.5')
    await login(other)
    await openTls(port, material.cert, '127.0.0.6')
    await closes(surplus)
    expect(states(...known, other)).toEqual([false, false, false, false])
  })

  it('a closed connection of a user makes room for the next', async () => {
    const known = []
    for (let i = 0; i < 3; i++) {
      const client = await openTls(port, material.cert)
      await login(client)
      known.push(client)
    }
    known[0]!.socket.destroy()
    await waitFor(() => expect(connections.count()).toBe(2))
    const next = await openTls(port, material.cert)
    await login(next)
    for (let i = 0; i < 5; i++) await openTls(port, material.cert)
    expect(states(known[1]!, known[2]!, next)).toEqual([false, false, false])
  })
})

describe('the connections of an on-link /64', () => {
  let neighbours: Connections
  beforeEach(() => {
    connections.stop()
    // 127.0.1.x are the addresses of one network; one connection each, eight in all.
    neighbours = connections = limitConnections(server, {
      ...{ maximum: 100, maximumPerAddress: 1, log: logged.log },
      clientOf: (address) => {
        const name = canonicalAddress(address)
        return { name, network: name.startsWith('127.0.1.') ? 'network' : undefined }
      },
    })
  })
  const near = (end: number) => openTls(port, material.cert, `127.0.1.${end}`)

  it('an on-link /64 has eight times the connections of a client; one more closes its longest idle one', async () => {
    const clients = []
    for (let end = 1; end <= networkFactor; end += 1) clients.push(await near(end))
    const elsewhere = await openTls(port, material.cert, '127.0.2.1')
    expect(neighbours.count()).toBe(networkFactor + 1)
    const fresh = await near(100)
    await closes(clients[0]!)
    expect(states(...clients.slice(1), fresh, elsewhere)).not.toContain(true)
    expect(neighbours.count()).toBe(networkFactor + 1)
  })

  it('a new connection of a full on-link /64 is accepted also where none in it is idle', async () => {
    const clients = []
    for (let end = 1; end <= networkFactor; end += 1) {
      const client = await near(end)
      await hold(client)
      clients.push(client)
    }
    const elsewhere = await openTls(port, material.cert, '127.0.2.1')
    await hold(elsewhere)
    const fresh = await near(100)
    await closes(clients[0]!)
    await login(fresh)
    expect(states(...clients.slice(1), fresh, elsewhere)).not.toContain(true)
  })

  it('logged-in connections count by user, no longer by their on-link /64', async () => {
    for (let end = 1; end <= networkFactor; end += 1) {
      user = `user ${end}`
      await login(await near(end))
    }
    const clients = []
    for (let end = 1; end <= networkFactor; end += 1) clients.push(await near(end + 50))
    expect(neighbours.count()).toBe(2 * networkFactor)
    expect(states(...clients)).not.toContain(true)
  })
})
