import { createSign, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import {
  contentClient,
  contentUploadsPath,
  digestOf,
  imageLayout,
  layoutTar,
  noReserve,
  type ContentClient,
} from '../../support/content-uploads.ts'
import { contentProgram } from '../../support/programs.ts'
import { type ErrorReply, type TestEdge, type TestEdgeOptions } from '../../support/test-edge.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { waitFor } from '../../support/wait-for.ts'
import { noise } from '../../support/random.ts'

let stateDirectory: string
let wire: WireEdge
let edge: TestEdge
let client: ContentClient
let token: string
const start = async (options: TestEdgeOptions = {}) => {
  wire = await createWireEdge({
    stateDirectory,
    contentProgram: contentProgram(),
    content: noReserve,
    ...options,
  })
  edge = wire.edge
  token = (await edge.login('alice')).access
  client = contentClient(edge, token)
}
const restart = async (options: TestEdgeOptions = {}) => {
  await wire.stop()
  await start(options)
}
beforeEach(async () => {
  stateDirectory = mkdtempSync(join(tmpdir(), 'edgehostd-upload-faults-'))
  await start()
})
afterEach(async () => {
  await wire.stop()
  rmSync(stateDirectory, { recursive: true, force: true })
})

const folderOf = (uid: string) => join(stateDirectory, 'content', 'uploads', uid)
const layer = noise(1_500_000).toString('hex')
// `inject` sends a body in one piece, of which the parser of forms accepts only so much at once.
const smallLayer = layer.slice(0, 200_000)
const layerBytes = Buffer.from(layer)
const layerDigest = digestOf(layerBytes)

/** Begins an upload of a large layer, with its manifest sent. */
async function begun() {
  const layout = imageLayout([layer])
  const { uid } = (await client.begin(layout.indexFile())).json<{ uid: string }>()
  const [manifest] = await client.missing(uid)
  await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)
  return { uid, layout }
}

const heldOf = async (uid: string) =>
  (await client.missing(uid)).find(({ digest }) => digest === layerDigest)?.heldBytes

/** Opens a connection that sends the head of a PATCH, and some bytes of its body. */
async function openPatch(uid: string, bytes: Buffer) {
  const socket = connect({
    port: wire.port,
    host: '127.0.0.1',
    ca: wire.cert,
    checkServerIdentity: () => undefined,
  })
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect')
  const { length } = layerBytes
  socket.write(
    [
      `PATCH ${contentUploadsPath}/${uid}/blobs/${layerDigest} HTTP/1.1`,
      'Host: localhost',
      `Authorization: ${token}`,
      'Content-Type: application/octet-stream',
      `Content-Range: bytes 0-${length - 1}/${length}`,
      `Content-Length: ${length}`,
      '\r\n',
    ].join('\r\n'),
  )
  socket.write(bytes)
  return socket
}

it('what was held before a restart of the daemon is held after it, and is hashed again before it continues', async () => {
  const { uid, layout } = await begun()
  await client.patch(uid, layerDigest, layerBytes.subarray(0, 2_000_000), 'bytes 0-1999999/3000000')
  await restart()
  expect(await heldOf(uid)).toBe(2_000_000)
  expect((await client.send(uid, layerBytes, 2_000_000)).statusCode).toBe(204)
  await client.sendAll(uid, layout)
  expect((await client.publish(uid)).statusCode).toBe(201)
})

it('bytes that changed on the disk are found by the digest, and the blob begins anew', async () => {
  const { uid } = await begun()
  await client.patch(uid, layerDigest, layerBytes.subarray(0, 2_000_000), 'bytes 0-1999999/3000000')
  const part = join(folderOf(uid), 'parts', layerDigest.slice(7))
  await truncate(part, 1_000_000)
  await truncate(part, 2_000_000)
  await restart()
  const reply = await client.send(uid, layerBytes, 2_000_000)
  expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([400, 'DigestMismatch'])
  expect(await heldOf(uid)).toBe(0)
})

it('after a restart of the host whole blobs are hashed again, and those that a power cut emptied are missing', async () => {
  const { uid, layout } = await begun()
  await client.sendAll(uid, layout)
  expect(await client.missing(uid)).toEqual([])
  await wire.stop()
  const note = join(folderOf(uid), 'upload.json')
  const text = await readFile(note, 'utf8')
  await writeFile(note, text.replace(/"bootId":"[^"]*"/, '"bootId":"another boot"'))
  await truncate(join(folderOf(uid), 'blobs', layerDigest.slice(7)), 0)
  await start()
  await waitFor(async () =>
    expect((await client.missing(uid)).map(({ digest }) => digest)).toEqual([layerDigest]),
  )
  await client.sendAll(uid, layout)
  expect((await client.publish(uid)).statusCode).toBe(201)
})

it('an upload with an emptied note or index is removed at the next start, and its client begins a new one', async () => {
  for (const name of ['upload.json', 'index.json']) {
    const { uid, layout } = await begun()
    await wire.stop()
    if (name === 'index.json') {
      const note = join(folderOf(uid), 'upload.json')
      const text = await readFile(note, 'utf8')
      await writeFile(note, text.replace(/"bootId":"[^"]*"/, '"bootId":"another boot"'))
    }
    await truncate(join(folderOf(uid), name), 0)
    await start()
    const again = await client.begin(layout.indexFile())
    expect(again.statusCode, name).toBe(201)
    const next = again.json<{ uid: string }>().uid
    expect(await readdir(join(stateDirectory, 'content', 'uploads')), name).toEqual([next])
    await client.remove(next)
  }
})

it('an upload that was begun without a signature is removed when a key is set', async () => {
  const { uid } = await begun()
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const signingKey = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  await restart({ signingKey })
  expect((await client.show(uid)).statusCode).toBe(404)
  const index = imageLayout([layer]).indexFile()
  const signature = { name: 'signature', content: createSign('sha256').update(index).sign(privateKey) }
  const signed = (await client.begin(index, signature)).json<{ uid: string }>()
  await restart({ signingKey })
  expect((await client.show(signed.uid)).statusCode).toBe(200)
})

it('what arrived before a client was gone is held, and a second request for the blob meanwhile is 409', async () => {
  const { uid } = await begun()
  const socket = await openPatch(uid, layerBytes.subarray(0, 1_000_000))
  await waitFor(async () => expect(await heldOf(uid)).toBeGreaterThan(0))
  const other = await client.patch(uid, layerDigest, layerBytes, 'bytes 0-2999999/3000000')
  expect([other.statusCode, other.json<ErrorReply>().code]).toEqual([409, 'BlobBusy'])
  socket.destroy()
  await waitFor(async () => expect(await heldOf(uid)).toBe(1_000_000))
  await waitFor(async () => expect((await client.send(uid, layerBytes, 1_000_000)).statusCode).toBe(204))
})

it('a delete ends the requests that send blobs, and nothing is left', async () => {
  const { uid } = await begun()
  const socket = await openPatch(uid, layerBytes.subarray(0, 1_000_000))
  await waitFor(async () => expect(await heldOf(uid)).toBeGreaterThan(0))
  const replied = once(socket, 'data')
  expect((await client.remove(uid)).statusCode).toBe(204)
  expect(String((await replied)[0])).toMatch(/^HTTP\/1\.1 404 /)
  socket.destroy()
  expect(await readdir(join(stateDirectory, 'content', 'uploads'))).toEqual([])
})

it('a stop of the daemon ends a request with 503, and what arrived is held', async () => {
  const { uid } = await begun()
  const socket = await openPatch(uid, layerBytes.subarray(0, 1_000_000))
  await waitFor(async () => expect(await heldOf(uid)).toBeGreaterThan(0))
  const replied = once(socket, 'data')
  const stopped = edge.daemon.stop()
  expect(String((await replied)[0])).toMatch(/^HTTP\/1\.1 503 /)
  socket.destroy()
  await stopped
  await start()
  expect(await heldOf(uid)).toBe(1_000_000)
})

it('without room the layers are refused before they are sent, with what is missing', async () => {
  await restart({ content: { reserve: { percent: 90, leastBytes: 1_099_511_627_776 } } })
  const layout = imageLayout([layer])
  const { uid } = (await client.begin(layout.indexFile())).json<{ uid: string }>()
  const [manifest] = await client.missing(uid)
  const reply = await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)
  const { code, details } = reply.json<ErrorReply & { details: { missingBytes: number } }>()
  expect([reply.statusCode, code]).toEqual([507, 'StorageFull'])
  expect(details.missingBytes).toBeGreaterThan(0)
})

it('uploads of which nothing arrives for days are forgotten, others stay', async () => {
  const { uid } = await begun()
  const job = edge.content.jobs?.find(({ name }) => name === 'content-uploads')
  await job?.run()
  expect((await client.show(uid)).statusCode).toBe(200)
  const ahead = vi.spyOn(edge.clock, 'now').mockReturnValue(Date.now() + 8 * 86_400_000)
  await job?.run()
  ahead.mockRestore()
  expect(await readdir(join(stateDirectory, 'content', 'uploads'))).toEqual([])
})

it('a file is published while it arrives, and sent again it is 200 with the same uid', async () => {
  const archive = layoutTar(imageLayout([smallLayer]))
  const first = await client.sendFile(archive)
  expect(first.statusCode, first.body).toBe(201)
  const { uid, uploadPath } = first.json<{ uid: string; uploadPath: string }>()
  expect((await readFile(uploadPath, 'utf8')).split('\n')[0]).toContain(uid)
  const again = await client.sendFile(archive)
  expect([again.statusCode, again.json()]).toMatchObject([200, { uid }])
  const unreadable = await client.sendFile(noise(100_000))
  expect(unreadable.statusCode, unreadable.body).toBe(400)
  const cut = layoutTar(imageLayout([`${smallLayer}x`])).subarray(0, 100_000)
  expect((await client.sendFile(cut)).statusCode).toBe(400)
  expect(await readdir(join(stateDirectory, 'content', 'uploads'))).toEqual([])
})

it('with a signing key a file is published only with its signature', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  await restart({ signingKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() })
  const archive = layoutTar(imageLayout([smallLayer]))
  const signature = { name: 'signature', content: createSign('sha256').update(archive).sign(privateKey) }
  expect((await client.sendFile(archive)).json<ErrorReply>().code).toBe('SignatureMissing')
  const wrong = { name: 'signature', content: createSign('sha256').update('x').sign(privateKey) }
  expect((await client.sendFile(archive, wrong)).json<ErrorReply>().code).toBe('SignatureInvalid')
  expect(await readdir(join(stateDirectory, 'content', 'bundles'))).toEqual([])
  expect((await client.sendFile(archive, signature)).statusCode).toBe(201)
})
