import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createAgent, type Connections } from '../../../src/outgoing/connection.ts'
import { exchange } from '../../../src/outgoing/exchange.ts'
import { makeMaterial } from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const servers: Server[] = []
afterEach(() => servers.splice(0).forEach((server) => server.closeAllConnections()))

/** A server that keeps its connections for ever, and what asks it. */
async function serve(authorities: (own: string) => string, connections: Connections = {}) {
  const material = await makeMaterial()
  const server = createServer({ ...material, keepAlive: true }, (_, reply) => reply.end('{}'))
  server.keepAliveTimeout = 0
  servers.push(server)
  let open = 0
  server.on('secureConnection', (socket) => {
    open += 1
    socket.on('close', () => (open -= 1))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const agent = createAgent({ url: url.href }, { ca: authorities(material.cert) }, 5_000, connections)
  const ask = () =>
    exchange(agent, {
      ...{ method: 'GET', url, headers: {}, longest: () => 100, signal: AbortSignal.timeout(5_000) },
    })
  return { ask, open: () => open }
}

describe('a connection to another server', () => {
  it('is kept between two requests, and closed where it was idle for too long', async () => {
    const { ask, open } = await serve((own) => own, { idleMs: 300 })
    await ask()
    await ask()
    expect(open()).toBe(1)
    await waitFor(() => expect(open()).toBe(0))
    expect((await ask()).text).toBe('{}')
  })

  it('is refused, and ends nothing else, where one of the authorities is damaged', async () => {
    const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    const { cert: other } = await makeMaterial()
    const { ask } = await serve(() => other + damaged)
    await expect(ask()).rejects.toThrow('certificate 2 of 2 in it is damaged')
  })
})
