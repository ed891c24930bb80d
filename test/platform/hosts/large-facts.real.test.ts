import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { mostOfCaller } from '../../../src/api/connection/waiting-replies.ts'
import { openTls, type Client } from '../../support/https-server.ts'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { waitFor } from '../../support/wait-for.ts'

const hostCount = 50
const readerCount = 24
/** A host with many disks, as it may report itself. */
const factsBytes = 114_000

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let headers: { authorization: string }
/** The replies of the server, in the order of the requests. */
const replies: ServerResponse[] = []
/** Called when one is given to its connection. */
let watch = (): unknown => undefined

const deviceOf = (bytes: number) => {
  const partition = { fileSystemType: 'ext4', mountPoint: `/mnt/${'x'.repeat(180)}`, totalSpace: 100 }
  const disk = { vendor: 'a vendor', partitions: Array.from({ length: 4 }, () => partition) }
  const diskCount = Math.floor(bytes / JSON.stringify(disk).length)
  return { archType: 'amd64' as const, disks: Array.from({ length: diskCount }, () => disk) }
}

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.start()
  platform.app.server.prependListener('request', (_request, response: ServerResponse) => {
    replies.push(response)
    // When it is counted, and others are closed for it.
    response.once('prefinish', () => process.nextTick(() => watch()))
  })
  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  headers = await platform.signIn('root@plant.example', 'a long password')
})
afterAll(() => platform.close())

async function connect(localAddress: string): Promise<Client & { ask(path: string): void }> {
  const { port } = platform.app.server.address() as AddressInfo
  const ca = readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
  const client = await openTls(port, ca, localAddress)
  const ask = (path: string) =>
    client.socket.write(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${headers.authorization}\r\n\r\n`,
    )
  return Object.assign(client, { ask })
}

const list = async (query = '') => (await platform.app.inject({ url: `/v1/edgehosts${query}`, headers })).body

it('what a host reports has at most 128 KiB: a page of fifty hosts with a megabyte each held up all requests, and lists have it where it is asked for', async () => {
  const host = playEdgeHost(platform)
  await host.register(platform.rooms.hosts.tokens.create({ metadata: { name: 'large' } }).token)
  await host.logIn()
  const report = async (bytes: number) => {
    const facts = (fill: number) =>
      JSON.stringify({
        spec: {
          device: { gpus: [{ addresses: { [`k${'x'.repeat(fill)}`]: '' } }] },
          host: { hostAddress: '' },
        },
      })
    const reply = await platform.app.inject({
      ...{ method: 'PUT', url: `/v1/edgehosts/${host.uid}`, payload: facts(bytes - facts(0).length) },
      headers: { authorization: host.token, 'content-type': 'application/json' },
    })
    return reply.statusCode
  }
  expect(await report(131_072)).toBe(204)
  expect(await report(131_073)).toBe(413)

  expect((await list()).length).toBeLessThan(2_000)
  expect((await list()).includes('"device":{}')).toBe(true)
  expect((await list('?fields=spec.device')).length).toBeGreaterThan(130_000)
  expect((await list('?fields=spec.device.gpus')).length).toBeGreaterThan(130_000)
  expect((await list('?fields=spec.device.nics,metadata.name')).length).toBeLessThan(2_000)
})

it('a page of hosts that 24 connections ask for and do not read waits once or twice in memory, and others are answered', async () => {
  const { hosts } = platform.rooms
  const { token } = hosts.tokens.create({ metadata: { name: 'hall' } })
  for (let count = 0; count < hostCount; count += 1) {
    const host = playEdgeHost(platform)
    await host.register(token)
    hosts.report(host.uid, {
      spec: { device: deviceOf(factsBytes), host: { hostAddress: '192.0.2.7' } },
    })
  }
  expect((await list()).length).toBeLessThan(65_536)
  const whole = '?fields=metadata.uid,spec.device'
  const pageBytes = (await list(whole)).length
  expect(pageBytes).toBeGreaterThan(hostCount * 110_000)

  const readers: Awaited<ReturnType<typeof connect>>[] = []
  for (let count = 0; count < readerCount; count += 1) {
    const reader = await connect(`127.0.0.${2 + (count % 15)}`)
    reader.socket.pause()
    readers.push(reader)
  }
  const owedBytes = () =>
    replies.reduce((sum, { req, writableLength }) => sum + (req.socket.destroyed ? 0 : writableLength), 0)
  const lost = () => replies.filter((reply) => reply.destroyed && !reply.writableFinished)
  /** Asks on all connections; gives the most bytes that waited after any of the replies. */
  const answer = async (path: string) => {
    replies.length = 0
    let most = 0
    watch = () => (most = Math.max(most, owedBytes()))
    for (const reader of readers) reader.ask(path)
    // Each takes as long as a page takes.
    for (let count = 1; count <= readerCount; count += 1)
      await waitFor(() =>
        expect(
          replies.filter((reply) => reply.writableEnded || reply.destroyed).length,
        ).toBeGreaterThanOrEqual(count),
      )
    return most
  }

  // Without the long parts all of them fit.
  expect(await answer('/v1/edgehosts')).toBeLessThan(readerCount * 65_536)
  expect(lost()).toEqual([])
  expect(await answer(`/v1/edgehosts${whole}`)).toBeLessThanOrEqual(mostOfCaller)
  expect(owedBytes()).toBeGreaterThan(pageBytes / 2)
  expect(lost().length).toBeGreaterThan(readerCount - 5)

  const honest = await connect('127.200.0.9')
  honest.ask('/v1/health/ping')
  await waitFor(() => expect(honest.received).toMatch(/^HTTP\/1\.1 200 /))
  for (const { socket } of [...readers, honest]) socket.destroy()
})
