import { once } from 'node:events'
import { open, rm, writeFile } from 'node:fs/promises'
import { IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FedServer } from '../../../src/api/connection/fed-server.ts'
import { densePieceBytes, FedSocket, pieceBytes } from '../../../src/api/connection/fed-socket.ts'
import { createFeeder, type Fed } from '../../../src/api/connection/feeder.ts'
import {
  createWaitingReplies,
  CountedResponse,
  type WaitingReplies,
} from '../../../src/api/connection/waiting-replies.ts'
import { createFileSender } from '../../../src/api/send-file.ts'
import { generous } from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const small = 'GET / HTTP/1.1\r\n\r\n'
/** More than the buffers of the kernel take of a client that reads nothing. */
const page = Buffer.alloc(20_000_000, 'y')
const mostOfAll = 70_000_000

let server: FedServer
let waiting: WaitingReplies
let callerName: string
let at: number
let closed: string[]
let requests: { request: IncomingMessage; response: CountedResponse }[]
let handle: (request: IncomingMessage, response: CountedResponse) => void
const sockets: Socket[] = []

beforeEach(() => {
  requests = []
  closed = []
  at = 0
  callerName = 'one client'
  handle = (_request, response) => response.end(page)
})

const isCounted = (response: ServerResponse): response is CountedResponse =>
  response instanceof CountedResponse

async function start(ofCaller: number): Promise<void> {
  waiting = createWaitingReplies({
    ...{ ofCaller, ofAll: mostOfAll, now: () => at, onClosed: (name) => closed.push(name) },
  })
  server = new FedServer(
    { timeouts: generous, flow: { feeder: createFeeder(), waiting }, turnNameOf: () => callerName },
    (request, response) => {
      if (!isCounted(response)) throw new Error('replies of this server are counted')
      requests.push({ request, response })
      handle(request, response)
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  const ended = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await ended
})

/** One whose client reads nothing yet. */
async function ask(text = small): Promise<Socket> {
  const before = requests.length
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  sockets.push(socket)
  socket.pause()
  socket.on('error', () => undefined)
  socket.write(text)
  await waitFor(() => expect(requests.length).toBeGreaterThan(before), { interval: 1 })
  return socket
}
const isClosed = (index: number) => requests[index]!.request.socket.destroyed

/** @returns bytes of the body */
async function read(socket: Socket): Promise<number> {
  let bytes = 0
  let head = ''
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (head.length < 1_000) head += chunk.toString('latin1')
  }
  return bytes - head.indexOf('\r\n\r\n') - 4
}

describe('the bytes of all callers', () => {
  beforeEach(() => start(mostOfAll))

  it('are bounded where one reply waits for each, and the one that waits for longest is lost', async () => {
    for (let index = 0; index < 8; index += 1) {
      callerName = `client ${index}`
      at = index * 1_000
      await ask()
      expect(waiting.bytes()).toBeLessThanOrEqual(mostOfAll)
    }
    expect(closed).toEqual(['client 0', 'client 1', 'client 2', 'client 3', 'client 4'])
    expect(requests.map((_request, index) => isClosed(index))).toEqual([
      ...[true, true, true, true, true],
      ...[false, false, false],
    ])
  })

  it('small replies that wait for long are not closed for large ones', async () => {
    handle = ({ socket }, response) => {
      ;(socket as unknown as FedSocket).outer.cork()
      response.end(Buffer.alloc(9_000, 'y'))
    }
    callerName = 'a slow client'
    await ask()
    handle = (_request, response) => response.end(page)
    for (let index = 1; index < 6; index += 1) {
      callerName = `client ${index}`
      at = index * 1_000
      await ask()
    }
    expect(closed).toEqual(['client 1', 'client 2'])
  })

  it('a reply that alone waits stays, whatever its size', async () => {
    handle = (_request, response) => response.end(Buffer.alloc(mostOfAll + 1_000_000, 'y'))
    await ask()
    expect(isClosed(0)).toBe(false)
    expect(waiting.bytes()).toBeGreaterThan(mostOfAll)
  })
})

describe('replies that are streamed', () => {
  const count = 20
  beforeEach(() => start(1_000_000))

  it('many honest pulls of one caller, which all read nothing at first, get their bytes', async () => {
    const file = join(tmpdir(), `waiting-replies-${process.pid}`)
    const content = Buffer.alloc(12_000_000, 'z')
    await writeFile(file, content)
    const handle_ = await open(file)
    const sender = createFileSender()
    handle = (_request, response) => {
      response.setHeader('connection', 'close')
      const reply = {
        raw: response,
        statusCode: 200,
        getHeaders: () => ({ 'content-length': content.length }),
      }
      void sender.send({
        ...{ file: handle_, start: 0, sizeBytes: content.length },
        begin: () => reply as unknown as FastifyReply,
      })
    }
    try {
      const clients = []
      for (let index = 0; index < count; index += 1) clients.push(await ask())
      await waitFor(() => expect(requests.every(({ response }) => response.writableLength > 0)).toBe(true))
      const held = requests.map(({ response }) => response.writableLength).reduce((sum, bytes) => sum + bytes)
      expect(held).toBeLessThan(16_777_216 + count * 20_000)
      const sizes = await Promise.all(clients.map(read))
      expect(sizes).toEqual(clients.map(() => content.length))
      expect(closed).toEqual([])
    } finally {
      await handle_.close()
      await rm(file)
    }
  })

  it('pieces by a pipe are not counted', async () => {
    handle = (_request, response) => {
      response.setHeader('connection', 'close')
      void pipeline(Readable.from(piecesOf(page)), response).catch(() => undefined)
    }
    const clients = []
    for (let index = 0; index < 4; index += 1) clients.push(await ask())
    await waitFor(() => expect(requests.every(({ response }) => response.writableNeedDrain)).toBe(true))
    expect(waiting.bytes()).toBe(0)
    await Promise.all(clients.map(read))
    expect(closed).toEqual([])
  })

  it('those that are written ahead of their clients are counted', async () => {
    handle = (_request, response) => {
      for (const piece of piecesOf(page)) response.write(piece)
    }
    for (let index = 0; index < 3; index += 1) await ask()
    expect(closed).toEqual(['one client', 'one client'])
    expect([0, 1, 2].map(isClosed)).toEqual([true, true, false])
  })
})

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 5_000) yield bytes.subarray(start, start + 5_000)
}

it('what waits of a connection is summed once for what arrives and is parsed at once', () => {
  const parsing = { ...createFeeder(), arrived: (fed: Fed) => fed.takePiece() }
  const outer = new Socket()
  const fed = new FedSocket(outer, parsing, 'one client')
  const request = new IncomingMessage(outer)
  let sums = 0
  const response = Object.defineProperty(new CountedResponse(request), 'writableLength', {
    get() {
      sums += 1
      return 0
    },
  })
  fed.owe(request, response)
  outer.emit('data', Buffer.alloc(3 * pieceBytes))
  expect([sums, fed.heldBytes]).toEqual([1, 3 * pieceBytes - densePieceBytes])
  fed.destroy()
})
