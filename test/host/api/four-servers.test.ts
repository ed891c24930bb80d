import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Flow } from '../../../src/api/connection/fed-server.ts'
import { mostOwed, mostRefusals, densePieceBytes } from '../../../src/api/connection/fed-socket.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { waitFor } from '../../support/wait-for.ts'

// Each server of both programs, as their composition roots make them: none parses what a connection has sent at once.

const small = 'GET / HTTP/1.1\r\n\r\n'
const perPiece = Math.ceil(densePieceBytes / small.length)
/** Those that are owed, and one piece. */
const mostInFlight = mostOwed - 1 + perPiece
/** As Node's diagnostics channel has them: of every HTTP server of this process, whatever made it. */
let begun: number
let owed: number
let mostEverOwed: number

function onStart(message: unknown): void {
  const { response } = message as { response: ServerResponse }
  begun += 1
  owed += 1
  mostEverOwed = Math.max(mostEverOwed, owed)
  response.once('close', () => (owed -= 1))
}

beforeEach(() => {
  begun = owed = mostEverOwed = 0
  subscribe('http.server.request.start', onStart)
})
const undo: (() => unknown)[] = []
afterEach(async () => {
  unsubscribe('http.server.request.start', onStart)
  for (const step of undo.splice(0).reverse()) await step()
})

/** 3,000 requests in one go, of which each is refused. */
async function flood(socket: Socket, flow: Flow): Promise<void> {
  undo.push(() => socket.destroy())
  socket.on('error', () => undefined)
  let received = ''
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  const before = flow.feeder.counts().pieces
  socket.write(small.repeat(3_000))
  await waitFor(() => expect(socket.closed).toBe(true))
  // Some hundred refusals in a row end it.
  expect(received.split('HTTP/1.1 4').length - 1).toBeGreaterThanOrEqual(mostRefusals)
  expect(begun).toBeLessThanOrEqual(mostRefusals + 2 * mostInFlight)
  expect(mostEverOwed).toBeLessThanOrEqual(mostInFlight)
  const pieces = flow.feeder.counts().pieces - before
  expect(pieces).toBeGreaterThanOrEqual(Math.floor(begun / perPiece))
  expect(pieces).toBeLessThanOrEqual(begun)
}

async function makeSocketPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-servers-'))
  undo.push(() => rm(folder, { recursive: true }))
  return join(folder, 'socket')
}

const tls = (port: number) => connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })

describe('of a host', () => {
  let edge: Awaited<ReturnType<typeof createTestEdge>>
  let socket: string
  beforeEach(async () => {
    socket = await makeSocketPath()
    edge = await createTestEdge({ socket })
    undo.push(() => edge.stop())
    await edge.daemon.start()
  })

  it('the API', async () => {
    await flood(tls((edge.app.server.address() as AddressInfo).port), edge.daemon.rooms.api.flow)
  })
  it('the socket of root', async () => {
    await flood(connectTcp({ path: socket }), edge.daemon.rooms.api.flow)
  })
  it('the registry', async () => {
    const { port } = edge.content.registry.state()
    await flood(connectTcp(port, '127.0.0.1'), edge.daemon.rooms.api.flow)
  })
})

describe('of the platform', () => {
  let platform: Awaited<ReturnType<typeof createTestPlatform>>
  let socket: string
  beforeEach(async () => {
    socket = await makeSocketPath()
    platform = await createTestPlatform({ socket })
    undo.push(() => platform.close())
    await platform.start()
  })

  it('the API', async () => {
    await flood(tls((platform.app.server.address() as AddressInfo).port), platform.rooms.api.flow)
  })
  it('the socket of root', async () => {
    await flood(connectTcp({ path: socket }), platform.rooms.api.flow)
  })
})
