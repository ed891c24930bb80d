import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FedServer } from '../../../src/api/connection/fed-server.ts'
import { createFeeder, type Fed, type Feeder } from '../../../src/api/connection/feeder.ts'
import { createWaitingReplies } from '../../../src/api/connection/waiting-replies.ts'
import { generous } from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

// Where many connections wait for their turns, bytes that have arrived wait in this process.

const headersMs = 1_000

let server: FedServer
/** Connections whose turn does not come yet. */
let turnless: Set<Fed> | undefined
let feeder: Feeder
let name: string
const sockets: Socket[] = []

beforeEach(async () => {
  turnless = new Set()
  feeder = createFeeder()
  const after = (next: (fed: Fed) => void) => (fed: Fed) => {
    if (turnless && fed.turnName === 'waits') turnless.add(fed)
    else next(fed)
  }
  const flow = {
    feeder: { ...feeder, arrived: after(feeder.arrived), offer: after(feeder.offer) },
    waiting: createWaitingReplies(),
  }
  const timeouts = { ...generous, headersMs }
  server = new FedServer({ timeouts, flow, turnNameOf: () => name }, (_request, response) =>
    response.end('pong'),
  )
  server.on('clientError', (_error, socket) => socket.end('HTTP/1.1 408 Request Timeout\r\n\r\n'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
})

async function open(turnName: string, text: string) {
  name = turnName
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  sockets.push(socket)
  const client = { received: '' }
  socket.on('data', (chunk: Buffer) => (client.received += chunk.toString()))
  const accepted = once(server, 'connection')
  socket.write(text)
  await accepted
  return client
}

function giveTurns(): void {
  const waiting = turnless ?? []
  turnless = undefined
  for (const fed of waiting) feeder.offer(fed)
}

it('header fields that wait for their turn here are not late', async () => {
  const honest = await open('waits', 'GET / HTTP/1.1\r\n\r\n')
  const half = await open('waits', 'GET / HTTP/1.1\r\n')
  const slow = await open('has turns', 'GET / HTTP/1.1\r\n')
  await waitFor(() => expect(turnless?.size).toBe(2))
  // It came last: the time of the others has passed too.
  await waitFor(() => expect(slow.received).toContain('408'))
  expect([honest.received, half.received]).toEqual(['', ''])
  giveTurns()
  await waitFor(() => expect(honest.received).toContain('pong'))
  // What is not whole has the time once more, and no longer.
  await waitFor(() => expect(half.received).toContain('408'))
  expect(half.received).not.toContain('pong')
})
