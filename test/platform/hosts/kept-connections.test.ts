import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { openTls, type Client } from '../../support/https-server.ts'
import { playEdgeHost, type PlayedEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { waitFor } from '../../support/wait-for.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
const clients: Client[] = []

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  await platform.close()
})

/** A platform that listens, and hosts that are logged in. */
async function start(names: readonly string[], flags: readonly string[], idleMs?: number) {
  platform = await createTestPlatform({ flags, ...(idleMs === undefined ? {} : { idleMs }) })
  await platform.start()
  const { token } = platform.rooms.hosts.tokens.create({ metadata: { name: 'hosts' } })
  const hosts: PlayedEdgeHost[] = []
  for (const name of names) {
    const host = playEdgeHost(platform)
    await host.register(token, name)
    await host.logIn()
    hosts.push(host)
  }
  return hosts
}

/** A connection from an address; all hosts of one address are behind one NAT. */
async function open(localAddress = '127.0.0.9'): Promise<Client> {
  const { port } = platform.app.server.address() as AddressInfo
  const ca = readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
  const client = await openTls(port, ca, localAddress)
  clients.push(client)
  return client
}

/** The header of the reply to a request on a connection. */
async function ask(client: Client, head: string, body = ''): Promise<string> {
  client.received = ''
  const length = body === '' ? '' : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  client.socket.write(`${head}\r\nhost: localhost\r\n${length}\r\n${body}`)
  await waitFor(() => expect(client.received).toContain('\r\n\r\n'))
  return client.received.slice(0, client.received.indexOf('\r\n\r\n')).toLowerCase()
}
const beat = (client: Client, host: PlayedEdgeHost | undefined) =>
  ask(
    client,
    `PATCH /v1/edgehosts/${host?.uid}/health HTTP/1.1\r\nauthorization: ${host?.token}`,
    '{"state":"healthy"}',
  )
const ping = (client: Client) => ask(client, 'GET /v1/health/ping HTTP/1.1')
const closes = (client: Client) => waitFor(() => expect(client.closed).toBe(true), 10_000)
const isKept = (reply: string) =>
  reply.startsWith('http/1.1 204') && reply.includes('\r\nkeep-alive: timeout=150')
const isClosing = (reply: string) =>
  reply.startsWith('http/1.1 204') && reply.includes('\r\nconnection: close')

describe('the connections of hosts', () => {
  it('are kept up to the maximum, and beyond it closed after each reply', async () => {
    const [one, two] = await start(['press-1', 'press-2'], ['--platform.keptConnections=1'])
    const kept = await open('127.0.0.8')
    expect(isKept(await beat(kept, one))).toBe(true)
    for (let times = 0; times < 2; times += 1) {
      const other = await open()
      expect(isClosing(await beat(other, two))).toBe(true)
      await closes(other)
    }
    expect(isKept(await beat(kept, one))).toBe(true)

    // The place is free when its connection has gone.
    kept.socket.destroy()
    await expect.poll(async () => isKept(await beat(await open(), two))).toBe(true)
  })

  it('are one of each host: a second one closes after its reply', async () => {
    const [one] = await start(['press-1'], [])
    const kept = await open()
    expect(isKept(await beat(kept, one))).toBe(true)
    const second = await open()
    expect(isClosing(await beat(second, one))).toBe(true)
    await closes(second)
    expect(kept.closed).toBe(false)
  })

  it('outlive the time after which others are closed', async () => {
    const [one] = await start(['press-1'], [], 1)
    const kept = await open()
    expect(isKept(await beat(kept, one))).toBe(true)
    const other = await open()
    expect(await ping(other)).not.toContain('timeout=150')
    await closes(other)
    expect(isKept(await beat(kept, one))).toBe(true)
  })

  it('are limited neither by their address nor by the limit of all others, which holds for those without a login', async () => {
    const limits = ['--api.connections.maximumPerAddress=2', '--api.connections.maximum=3']
    const hosts = await start(['press-1', 'press-2', 'press-3', 'press-4', 'press-5'], limits)
    const kept: Client[] = []
    for (const host of hosts) {
      const client = await open()
      expect(isKept(await beat(client, host))).toBe(true)
      kept.push(client)
    }
    const strangers: Client[] = []
    for (let count = 0; count < 3; count += 1) {
      const stranger = await open()
      expect(await ping(stranger)).toContain('200')
      strangers.push(stranger)
    }
    await closes(strangers[0]!)
    expect(strangers.slice(1).map(({ closed }) => closed)).toEqual([false, false])
    expect(kept.map(({ closed }) => closed)).toEqual([false, false, false, false, false])
    for (const [index, client] of kept.entries()) expect(isKept(await beat(client, hosts[index]))).toBe(true)
  })

  it('are kept no longer once a request has no valid token, as that of a host that was removed', async () => {
    const [one, two] = await start(['press-1', 'press-2'], ['--platform.keptConnections=1'])
    const kept = await open('127.0.0.8')
    expect(isKept(await beat(kept, one))).toBe(true)
    platform.rooms.hosts.remove(one!.uid, '')
    const refused = await beat(kept, one)
    expect(refused).toContain('http/1.1 401')
    expect(refused).not.toContain('timeout=150')
    await expect.poll(async () => isKept(await beat(await open(), two))).toBe(true)
  })
})
