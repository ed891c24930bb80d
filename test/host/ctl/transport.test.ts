import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readReply } from '../../../src/ctl/reply.ts'
import { createTransport, type Transport } from '../../../src/ctl/transport.ts'
import { waitFor } from '../../support/wait-for.ts'

let folder: string
let server: Server
let transport: Transport
let connections: Socket[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostctl-transport-'))
  connections = []
})
afterEach(async () => {
  transport.close()
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

/** A host on a local socket. */
async function start(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<void> {
  const path = join(folder, 'api.sock')
  server = createServer(answer)
  server.on('connection', (socket) => connections.push(socket))
  server.listen(path)
  await once(server, 'listening')
  transport = createTransport(
    { kind: 'socket', path },
    { expected: undefined, ask: () => undefined, say: () => undefined },
  )
}

const send = async (body: Readable, sizeBytes: number) =>
  readReply(
    await transport.send({
      ...{ method: 'PATCH', path: '/', isKept: true },
      body: { sizeBytes, open: () => body },
    }),
  )

/** A stream whose end comes later than its bytes, as that of a file. */
function endless(bytes: Buffer): Readable {
  const stream = new Readable({ read: () => undefined })
  stream.push(bytes)
  return stream
}

it('requests in a row use one connection, also where a reply overtakes the end of a body', async () => {
  // All bytes have arrived, so the host may reply.
  await start((request, response) => {
    request.once('data', () => response.writeHead(204).end())
  })
  for (let round = 0; round < 5; round += 1)
    expect(await send(endless(Buffer.from('blob')), 4)).toMatchObject({ status: 204 })
  expect(connections).toHaveLength(1)
})

it('after a reply to a part of a body no more is sent, and the connection is closed', async () => {
  await start((_request, response) => void response.writeHead(429).end('too many'))
  const body = endless(Buffer.from('some'))
  const reply = await send(body, 1_000_000)
  expect(reply).toMatchObject({ status: 429, body: Buffer.from('too many') })
  await waitFor(() => expect(connections.map(({ closed }) => closed)).toEqual([true]))
  expect(body.destroyed).toBe(true)
})
