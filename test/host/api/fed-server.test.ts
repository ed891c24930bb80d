import { once } from 'node:events'
import { createServer as createUpstream, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect as connectTcp } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FedServer } from '../../../src/api/connection/fed-server.ts'
import {
  densePieceBytes,
  type FedSocket,
  mostOwed,
  mostRefusals,
  pieceBytes,
} from '../../../src/api/connection/fed-socket.ts'
import { createFeeder, type Feeder } from '../../../src/api/connection/feeder.ts'
import { generous, makeMaterial, openTls, type Client } from '../../support/https-server.ts'
import type { TlsMaterial } from '../../../src/system/tls-options.ts'
import { createWaitingReplies, type WaitingReplies } from '../../../src/api/connection/waiting-replies.ts'
import { waitFor } from '../../support/wait-for.ts'

const small = 'GET / HTTP/1.1\r\n\r\n'
/** As many as fit into a piece, and those whose replies are owed before it. */
const mostInFlight = mostOwed - 1 + Math.ceil(densePieceBytes / small.length)

const mostWaitingBytes = 50_000_000

let material: TlsMaterial
beforeAll(async () => {
  material = await makeMaterial()
})

let server: FedServer
let feeder: Feeder
let waiting: WaitingReplies
let turnName: string | undefined
let port: number
let requests: { request: IncomingMessage; response: ServerResponse }[]
let handle: (request: IncomingMessage, response: ServerResponse) => void
const clients: Client[] = []

beforeEach(async () => {
  requests = []
  handle = () => undefined
  feeder = createFeeder()
  waiting = createWaitingReplies({ ofCaller: mostWaitingBytes })
  turnName = undefined
  server = new FedServer(
    { material, timeouts: generous, flow: { feeder, waiting }, turnNameOf: () => turnName },
    (request, response) => {
      requests.push({ request, response })
      handle(request, response)
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
})

async function open(): Promise<Client> {
  const client = await openTls(port, material.cert)
  clients.push(client)
  return client
}

const replies = ({ received }: Client) => received.split('HTTP/1.1 ').length - 1

describe('pipelined requests', () => {
  it('no more are parsed while replies are owed, and all are answered in their order', async () => {
    const client = await open()
    client.socket.write(small.repeat(2_000))
    await waitFor(() => expect(requests.length).toBeGreaterThanOrEqual(mostOwed))
    const seen = new Set<number>()
    while (replies(client) < 2_000) {
      const owed = requests.filter(({ response }) => !response.writableFinished)
      seen.add(owed.length)
      expect(owed.length).toBeLessThanOrEqual(mostInFlight)
      owed[0]?.response.end(String(requests.indexOf(owed[0])))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(requests).toHaveLength(2_000)
    expect(Math.max(...seen)).toBeGreaterThanOrEqual(mostOwed)
    const bodies = [...client.received.matchAll(/\r\n\r\n(\d+)/g)].map(([, body]) => Number(body))
    expect(bodies).toEqual(Array.from({ length: 2_000 }, (_, index) => index))
  })

  it('a client that sends 60 connections full of them, and reads nothing, has hundreds of requests parsed and no more', async () => {
    const all = await Promise.all(Array.from({ length: 60 }, () => open()))
    for (const { socket } of all) socket.write(small.repeat(10_000))
    await waitFor(() => expect(requests.length).toBeGreaterThanOrEqual(60 * mostOwed))
    const { pieces } = feeder.counts()
    const other = await open()
    other.socket.write(small)
    await waitFor(() => expect(requests.length).toBeGreaterThan(60 * mostOwed))
    expect(requests.length).toBeLessThanOrEqual(60 * mostInFlight + 1)
    expect(pieces).toBeLessThanOrEqual(60 * Math.ceil(mostOwed / 14))
  })

  it('300 requests and the end of what a client sends, at once, are all answered', async () => {
    handle = (_request, response) => response.end('pong')
    const client = await open()
    client.socket.end(small.repeat(300))
    await waitFor(() => expect(client.closed).toBe(true))
    expect(replies(client)).toBe(300)
  })
})

describe('refusals', () => {
  it('a connection ends some hundred refusals in a row, with a reply that says so, and stays a while', async () => {
    handle = (_request, response) => {
      response.statusCode = 404
      response.end()
    }
    const client = await open()
    client.socket.write(small.repeat(5_000))
    await waitFor(() => expect(client.received).toMatch(/^connection: close\r$/im))
    expect(client.closed).toBe(false)
    await waitFor(() => expect(client.closed).toBe(true))
    expect(requests.length).toBeGreaterThan(mostRefusals)
    expect(requests.length).toBeLessThanOrEqual(mostRefusals + 2 * mostInFlight)
    expect(client.received.match(/^connection: close\r$/gim)?.length).toBeGreaterThanOrEqual(1)
  })

  it('a success between refusals begins the row again', async () => {
    handle = (_request, response) => {
      response.statusCode = requests.length % 50 === 0 ? 200 : 401
      response.end()
    }
    const client = await open()
    for (let index = 1; index <= 300; index += 1) {
      client.socket.write(small)
      await waitFor(() => expect(replies(client)).toBe(index), { interval: 1 })
    }
    expect(client.closed).toBe(false)
  })
})

describe('bodies', () => {
  const body = Buffer.alloc(3_000_000, 'x')

  it('a body of known length arrives whole in pieces of TLS, and the requests behind it in small ones', async () => {
    handle = (request, response) => {
      if (request.method === 'GET') return
      let bytes = 0
      request.on('data', (chunk: Buffer) => (bytes += chunk.length))
      request.on('end', () => response.end(String(bytes)))
    }
    const client = await open()
    client.socket.write(`PUT / HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n`)
    client.socket.write(body)
    client.socket.write(small.repeat(2_000))
    await waitFor(() => expect(client.received).toContain(`\r\n\r\n${body.length}`))
    await waitFor(() => expect(requests.length).toBeGreaterThan(mostOwed))
    // The end of the body, a piece of requests, and those that were owed.
    expect(requests.length).toBeLessThanOrEqual(2 * mostInFlight)
    expect(feeder.counts().pieces).toBeLessThan(1_000)
  })

  it('chunks of one byte arrive whole, in more pieces', async () => {
    handle = (request, response) => {
      let bytes = 0
      request.on('data', (chunk: Buffer) => (bytes += chunk.length))
      request.on('end', () => response.end(String(bytes)))
    }
    const client = await open()
    client.socket.write('PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.socket.write(`${'1\r\nx\r\n'.repeat(50_000)}0\r\n\r\n`)
    await waitFor(() => expect(client.received).toContain('\r\n\r\n50000'))
  })

  it('of a body that is not read, one piece is parsed', async () => {
    const client = await open()
    client.socket.write('PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.socket.write('1\r\nx\r\n'.repeat(50_000))
    await waitFor(() => expect(requests).toHaveLength(1))
    const other = await open()
    other.socket.write(small)
    await waitFor(() => expect(requests).toHaveLength(2))
    expect(requests[0]!.request.readableLength).toBeLessThanOrEqual(pieceBytes)
  })
})

it('a reply of megabytes arrives whole, and is not encrypted ahead of a client that does not read', async () => {
  const page = Buffer.alloc(6_000_000, 'y')
  let sent = false
  handle = (_request, response) => {
    response.end(page)
    if (requests.length === 1) response.once('finish', () => (sent = true))
  }
  const client = await open()
  client.socket.pause()
  client.socket.write(small)
  await waitFor(() => expect(requests).toHaveLength(1))
  const other = await open()
  other.socket.write(small)
  await waitFor(() => expect(replies(other)).toBe(1))
  const [socket] = requests.map(({ request }) => request.socket as unknown as FedSocket)
  expect(sent).toBe(false)
  // The rest waits as the one buffer of the page.
  expect(socket!.outer.writableLength).toBeLessThanOrEqual(65_536 + 200)
  client.socket.resume()
  await waitFor(() => expect(client.received.length).toBeGreaterThanOrEqual(page.length))
})

describe('replies that are not read', () => {
  const page = Buffer.alloc(20_000_000, 'y')
  beforeEach(() => {
    turnName = 'one client'
    handle = (_request, response) => response.end(page)
  })
  const isClosed = (index: number) => requests[index]!.request.socket.destroyed
  async function ask(text = small): Promise<Client> {
    const before = requests.length
    const client = await open()
    client.socket.pause()
    client.socket.write(text)
    await waitFor(() => expect(requests.length).toBeGreaterThan(before))
    return client
  }

  it('bytes that wait for one caller are bounded: the connection that reads nothing for longest is closed', async () => {
    for (let index = 0; index < 12; index += 1) {
      await ask()
      expect(waiting.bytes()).toBeLessThanOrEqual(mostWaitingBytes)
      expect(requests.filter((_request, each) => !isClosed(each)).length).toBeLessThanOrEqual(2)
    }
    turnName = 'another client'
    const other = await ask()
    expect([10, 11, 12].map(isClosed)).toEqual([false, false, false])
    other.socket.resume()
    await waitFor(() => expect(other.received.length).toBeGreaterThan(page.length))
  })

  it('one that reads slowly is not the one', async () => {
    const reader = await ask()
    await ask()
    reader.socket.on('data', () => {
      if (reader.received.length > 8_000_000) reader.socket.pause()
    })
    reader.socket.resume()
    await waitFor(() => expect(reader.socket.isPaused()).toBe(true))
    await ask()
    expect([0, 1, 2].map(isClosed)).toEqual([false, true, false])
  })

  it('no more requests of the connection are parsed, and what one piece has of them ends it at the limit', async () => {
    await ask(`GET / HTTP/1.1\r\nX: ${'x'.repeat(1_100)}\r\n\r\n`.repeat(4))
    turnName = 'another client'
    await ask(small.repeat(4))
    expect(isClosed(1)).toBe(true)
    expect(requests).toHaveLength(5)
    expect(isClosed(0)).toBe(false)
  })
})

it('a server of plain HTTP answers as one of Node does', async () => {
  const answer = (_request: IncomingMessage, response: ServerResponse) => response.end('pong')
  const plain = new FedServer({ timeouts: generous }, answer)
  const bare = createUpstream({ requireHostHeader: false }, answer)
  const received: string[] = []
  for (const each of [plain, bare]) {
    each.listen(0, '127.0.0.1')
    await once(each, 'listening')
    const socket = connectTcp((each.address() as AddressInfo).port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.write('GET / HTTP/1.1\r\nConnection: close\r\n\r\n')
    await once(socket, 'close')
    received.push(text.replace(/^Date: .*$/m, ''))
    const closed = once(each, 'close')
    each.close()
    await closed
  }
  expect(received[0]).toBe(received[1])
})
