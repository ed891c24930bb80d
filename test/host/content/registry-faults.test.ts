import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, readlink, symlink, truncate, unlink, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { startContentRegistry, type TestRegistry } from '../../support/content-registry.ts'
import { createLayout, type TestDescriptor, type TestLayout } from '../../support/layouts.ts'
import { waitFor } from '../../support/wait-for.ts'
import { noise } from '../../support/random.ts'

let registry: TestRegistry
let layout: TestLayout
let image: TestDescriptor
let layer: TestDescriptor
let uid: string
let opened: { destroy(): unknown }[] = []

// More than the kernel buffers of one connection.
const large = noise(24 * 2 ** 20)
const small = large.subarray(0, 100_000)

async function publish(content: Buffer): Promise<void> {
  layout = createLayout()
  layer = layout.put(content, mediaTypes.layer)
  const config = layout.putJson(
    { architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [layer.digest] } },
    mediaTypes.config,
  )
  image = layout.putJson(
    { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [layer] },
    mediaTypes.manifest,
  )
  layout.list(image, { 'io.containerd.image.name': 'docker.io/library/app:1' })
  uid = await registry.publish(layout)
}

beforeEach(async () => {
  registry = await startContentRegistry()
  await publish(small)
})
afterEach(async () => {
  for (const each of opened) each.destroy()
  opened = []
  await registry.stop()
})

const errorOf = (body: Buffer) =>
  (JSON.parse(body.toString()) as { errors: { code: string; message: string }[] }).errors[0]
const blobPath = () => `/v2/library/app/blobs/${layer.digest}`
const manifestPath = () => `/v2/library/app/manifests/${image.digest}`
const damaged = () => readdir(`${registry.folder}/content/damaged`)
/** Files of blobs that this process has open. */
async function openBlobs(): Promise<string[]> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  )
  return links.filter((file) => file.startsWith(`${registry.folder}/content/blobs`))
}

/** A pull whose reader stops after the first piece; of a large layer it is not at its end. */
async function beginPull(): Promise<IncomingMessage> {
  const request = httpRequest({
    ...{ host: '127.0.0.1', port: registry.registry.state().port, path: blobPath(), agent: false },
    headers: { authorization: registry.authorization() },
  }).end()
  request.on('error', () => undefined)
  opened.push(request)
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  await once(reply, 'readable')
  return reply
}

async function digestOf(reply: IncomingMessage): Promise<string> {
  const sum = createHash('sha256')
  for await (const chunk of reply) sum.update(chunk as Buffer)
  return `sha256:${sum.digest('hex')}`
}

async function replaceLayer(make: (file: string) => unknown): Promise<void> {
  await unlink(registry.fileOf(layer.digest))
  await make(registry.fileOf(layer.digest))
}
const makePipe = (file: string) => execFileSync('mkfifo', [file])

async function openSocket(): Promise<Socket> {
  const socket = connect(registry.registry.state().port, '127.0.0.1')
  socket.on('error', () => undefined)
  opened.push(socket)
  await once(socket, 'connect')
  return socket
}

it.each([
  ['a blob that was cut off', 'BLOB_UNKNOWN', () => truncate(registry.fileOf(layer.digest), 5), blobPath],
  ['a blob whose file is gone', 'BLOB_UNKNOWN', () => unlink(registry.fileOf(layer.digest)), blobPath],
  ['a blob whose file is a folder', 'BLOB_UNKNOWN', () => replaceLayer(mkdir), blobPath],
  [
    'a blob whose file is a link to itself',
    'BLOB_UNKNOWN',
    () => replaceLayer((file) => symlink(file, file)),
    blobPath,
  ],
  ['a blob whose file is a pipe', 'BLOB_UNKNOWN', () => replaceLayer(makePipe), blobPath],
  [
    'a manifest with other bytes',
    'MANIFEST_UNKNOWN',
    () => writeFile(registry.fileOf(image.digest), Buffer.alloc(image.size, '{')),
    manifestPath,
  ],
] as const)(
  '%s is not served, is set aside, and is served again after an upload',
  async (_what, code, damage, path) => {
    await damage()
    for (const time of ['at once', 'when it is set aside']) {
      const { status, headers, body } = await registry.ask(path())
      expect([time, status, errorOf(body)]).toEqual([
        time,
        404,
        expect.objectContaining({ code, message: expect.stringContaining('is damaged') as string }),
      ])
      expect(headers.etag).toBeUndefined()
      await waitFor(async () => expect(await damaged()).toHaveLength(1))
    }
    expect((await registry.ask(path(), {}, 'HEAD')).status).toBe(404)
    expect(registry.registry.figures().edgehostd_registry_unreadable_blobs_total).toBe(1)
    await registry.publish(layout)
    expect((await registry.ask(path())).status).toBe(200)
  },
)

it('a blob that is deleted while it is pulled arrives whole; the next pull does not find it', async () => {
  await publish(large)
  const reply = await beginPull()
  await registry.store.remove(uid, () => undefined)
  expect(await digestOf(reply)).toBe(layer.digest)
  expect(errorOf((await registry.ask(blobPath())).body)?.code).toBe('BLOB_UNKNOWN')
  expect(await damaged()).toEqual([])
})

it('a blob that is cut off while it is pulled ends with the connection, never like a whole one', async () => {
  await publish(large)
  const reply = await beginPull()
  await truncate(registry.fileOf(layer.digest), 20 * 2 ** 20)
  await expect(digestOf(reply)).rejects.toThrow('aborted')
  await waitFor(async () => expect(await damaged()).toHaveLength(1))
  expect(await openBlobs()).toEqual([])
})

it('a client that goes away during a blob leaves no file open', async () => {
  await publish(large)
  const reply = await beginPull()
  expect(await openBlobs()).toHaveLength(1)
  reply.destroy()
  await waitFor(async () => expect(await openBlobs()).toEqual([]))
  expect(registry.lines.filter(({ level }) => Number(level) >= 40)).toEqual([])
})

it('a client that sends many requests at once on one connection and goes away leaves no file open', async () => {
  await publish(large)
  const socket = await openSocket()
  const one = `GET ${blobPath()} HTTP/1.1\r\nHost: x\r\nAuthorization: ${registry.authorization()}\r\n\r\n`
  socket.write(one.repeat(30))
  await waitFor(async () => expect((await openBlobs()).length).toBeGreaterThan(0))
  socket.destroy()
  await waitFor(async () => expect(await openBlobs()).toEqual([]))
  expect((await registry.ask('/v2/')).status).toBe(200)
})

it('of requests that are sent at once on one connection, one at a time has a file open', async () => {
  await publish(large)
  const one = `GET ${blobPath()} HTTP/1.1\r\nHost: x\r\nAuthorization: ${registry.authorization()}\r\n\r\n`
  const waiting = await openSocket()
  waiting.write(one.repeat(60))
  await waitFor(async () => expect(await openBlobs()).toHaveLength(1))
  const flood = await openSocket()
  flood.write(one.repeat(400))
  await waitFor(async () => expect(await openBlobs()).toHaveLength(2))
  expect((await registry.ask('/v2/')).status).toBe(200)
  flood.destroy()
  await waitFor(async () => expect(await openBlobs()).toHaveLength(1))
  expect((await registry.ask('/v2/')).status).toBe(200)
})

it('requests that are sent one behind the other are answered in their order', async () => {
  const socket = await openSocket()
  const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: ${registry.authorization()}\r\n`
  socket.write(
    `GET ${blobPath()} ${head}Range: bytes=0-2\r\n\r\nGET ${manifestPath()} ${head}\r\nGET ${blobPath()} ${head}Range: bytes=3-4\r\nConnection: close\r\n\r\n`,
  )
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('latin1')
  const bodies = text.split(/HTTP\/1\.1 20[06] [A-Za-z ]+\r\n(?:[^\r]+\r\n)+\r\n/).slice(1)
  const manifest = await readFile(registry.fileOf(image.digest), 'latin1')
  expect(bodies).toEqual([
    small.subarray(0, 3).toString('latin1'),
    manifest,
    small.subarray(3, 5).toString('latin1'),
  ])
})

it('200 clients pull at once, and each gets its own bytes', async () => {
  await publish(large)
  const part = (index: number) => ({ start: index * 100_000, end: index * 100_000 + 119_999 })
  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, index) => {
      const { start, end } = part(index)
      return registry.ask(blobPath(), { range: `bytes=${start}-${end}` })
    }),
  )
  for (const [index, { status, body }] of replies.entries()) {
    const { start, end } = part(index)
    expect([index, status, body.equals(large.subarray(start, end + 1))]).toEqual([index, 206, true])
  }
  expect(await openBlobs()).toEqual([])
})

it('a stop lets pulls end that are read', async () => {
  await registry.stop()
  registry = await startContentRegistry({ timing: { drainMs: 600_000 } })
  await publish(large)
  const read = await beginPull()
  registry.beginStop()
  expect(await digestOf(read)).toBe(layer.digest)
  await registry.registry.stop()
  expect(registry.registry.state().isListening).toBe(false)
})

it('a stop cuts pulls that are not read after a time', async () => {
  await registry.stop()
  registry = await startContentRegistry({ timing: { drainMs: 50 } })
  await publish(large)
  const stuck = await beginPull()
  registry.beginStop()
  await registry.registry.stop()
  await expect(digestOf(stuck)).rejects.toThrow('aborted')
  expect(registry.registry.state().isListening).toBe(false)
})

it('a port that is taken is reported with what to do, and opened when it is free', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  await registry.stop()
  registry = await startContentRegistry({ settings: { port }, timing: { retryMs: 20 } })
  expect(registry.registry.state()).toMatchObject({
    ...{ isListening: false, port },
    problem: `the registry cannot listen on 127.0.0.1:${port}: another process listens there: find it with ss -ltnp 'sport = :${port}' and end it, or set content.registry.port`,
  })
  other.close()
  await waitFor(() => expect(registry.registry.state().isListening).toBe(true))
  expect(registry.registry.state().problem).toBeUndefined()
  expect((await registry.ask('/v2/')).status).toBe(200)
  expect(registry.texts().filter((text) => text.includes('cannot listen'))).toHaveLength(1)
})
