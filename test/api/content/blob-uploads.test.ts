import { createSign, generateKeyPairSync } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import {
  contentClient,
  digestOf,
  imageLayout,
  noReserve,
  type ContentClient,
} from '../../support/content-uploads.ts'
import { createLayout } from '../../support/layouts.ts'
import { contentProgram } from '../../support/programs.ts'
import {
  createTestEdge,
  type ErrorReply,
  type TestEdge,
  type TestEdgeOptions,
} from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

let edge: TestEdge
let client: ContentClient
const start = async (options: TestEdgeOptions = {}) => {
  edge = await createTestEdge({ content: noReserve, ...options })
  client = contentClient(edge, (await edge.login('alice')).access)
}
beforeEach(() => start())
afterEach(() => edge.stop())

const content = (...parts: string[]) => join(edge.stateDirectory, 'content', ...parts)
const begin = async (index: Buffer) => (await client.begin(index)).json<{ uid: string }>().uid
const errorOf = (reply: Awaited<ReturnType<ContentClient['publish']>>) => {
  const { code, details } = reply.json<ErrorReply & { details?: Record<string, unknown> }>()
  return { status: reply.statusCode, code, details }
}

it('what a killed daemon left of an upload of a file goes with the start, before a request asks for uploads', async () => {
  const stateDirectory = await mkdtemp(join(tmpdir(), 'edgehostd-left-'))
  onTestFinished(() => rm(stateDirectory, { recursive: true, force: true }))
  await edge.stop()
  await start({ stateDirectory })
  const continued = await begin(imageLayout().indexFile())
  await edge.stop()
  await start({ stateDirectory })
  const uid = '0198c1f0-6f0e-4c3a-9d52-2f6d7c1b0a44'
  await mkdir(content('uploads', uid, 'blobs'), { recursive: true })
  const note = {
    kind: 'file',
    name: '',
    fileName: '',
    indexDigest: '',
    createdAt: 1,
    bootId: '',
    signedBy: '',
  }
  await writeFile(content('uploads', uid, 'upload.json'), JSON.stringify(note))
  await edge.daemon.start()
  await waitFor(async () => {
    expect(await readdir(content('uploads'))).toEqual([continued])
  })
})

describe('a publication whose session ends', () => {
  let folder: string
  const open = () => writeFile(join(folder, 'gate'), '')
  beforeEach(async () => {
    await edge.stop()
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-gate-'))
    // Does nothing before the gate is open.
    const program = join(folder, 'content.cjs')
    await writeFile(
      program,
      `const cell = new Int32Array(new SharedArrayBuffer(4))
      while (!require('fs').existsSync(__dirname + '/gate')) Atomics.wait(cell, 0, 0, 10)
      require(${JSON.stringify(contentProgram())})\n`,
    )
    await start({ contentProgram: program })
  })
  afterEach(() => rm(folder, { recursive: true }))

  const logOut = (token: string) =>
    edge.post('/v1/users/default/logout', {}, { headers: { authorization: token } })
  const phases = async () =>
    (await client.list()).json<{ items: { phase: string }[] }>().items.map(({ phase }) => phase)

  it('is refused, publishes nothing, and may be asked for again', async () => {
    const layout = imageLayout(['one'])
    const uid = await begin(layout.indexFile())
    await client.sendAll(uid, layout)
    const { access } = await edge.login('alice')
    const asked = contentClient(edge, access).publish(uid)
    await waitFor(async () => expect(await phases()).toEqual(['checking']))
    await logOut(access)
    expect(errorOf(await asked)).toMatchObject({ status: 401, code: 'Unauthenticated' })
    expect(await readdir(content('bundles'))).toEqual([])
    await open()
    expect((await client.publish(uid)).statusCode).toBe(201)
    expect(await readdir(content('bundles'))).toEqual([`${uid}.jsonl`])
  })

  it('goes on for another session that waits for it', async () => {
    const layout = imageLayout(['one'])
    const uid = await begin(layout.indexFile())
    await client.sendAll(uid, layout)
    const { access } = await edge.login('alice')
    const asked = contentClient(edge, access).publish(uid)
    const other = client.publish(uid)
    await waitFor(async () => expect(await phases()).toEqual(['checking']))
    await logOut(access)
    expect(errorOf(await asked)).toMatchObject({ status: 401 })
    await open()
    expect((await other).statusCode).toBe(201)
  })
})

describe('an upload blob by blob', () => {
  it('names of blobs become known as manifests arrive, and the bundle is published when none is missing', async () => {
    const layout = imageLayout(['one', 'two'])
    const begun = await client.begin(layout.indexFile(), { name: 'name', content: 'factory 7' })
    expect([begun.statusCode, begun.json()]).toMatchObject([201, { isPublished: false }])
    const { uid } = begun.json<{ uid: string }>()

    const [manifest, ...none] = await client.missing(uid)
    expect(none).toEqual([])
    expect(manifest).toMatchObject({ heldBytes: 0, isManifest: true, isOptional: false })
    expect((await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)).statusCode).toBe(204)

    const named = await client.missing(uid)
    expect(named.map(({ isManifest }) => isManifest)).toEqual([false, false, false])
    const refusal = errorOf(await client.publish(uid))
    expect(refusal).toMatchObject({ status: 409, code: 'BlobsMissing', details: { missingBlobs: 3 } })

    await client.sendAll(uid, layout)
    expect(await client.missing(uid)).toEqual([])
    const published = await client.publish(uid)
    expect([published.statusCode, published.json()]).toMatchObject([201, { uid }])
    expect((await readdir(content('uploads'))).length).toBe(0)
    for (const [hex, bytes] of layout.blobs)
      expect(await readFile(content('blobs', 'sha256', hex))).toEqual(bytes)
    expect((await client.show(uid)).statusCode).toBe(404)
  })

  it('the same index is 200 with the running upload, later with the bundle, and publishing again is 200', async () => {
    const layout = imageLayout()
    const first = await client.begin(layout.indexFile())
    const { uid } = first.json<{ uid: string }>()
    const again = await client.begin(layout.indexFile())
    expect([again.statusCode, again.json()]).toMatchObject([200, { uid, isPublished: false }])
    await client.sendAll(uid, layout)
    expect((await client.publish(uid)).statusCode).toBe(201)
    const known = await client.begin(layout.indexFile())
    expect([known.statusCode, known.json()]).toMatchObject([200, { uid, isPublished: true }])
    const late = await client.publish(uid)
    expect([late.statusCode, late.json()]).toMatchObject([200, { uid }])
  })

  it('an index.json and a manifest of many objects are refused without the memory of the daemon', async () => {
    const bomb = (bytes: number) =>
      Buffer.from(`{"schemaVersion":2,"manifests":[${'{},'.repeat((bytes - 100) / 3)}{}]}`)
    const before = process.memoryUsage().heapUsed
    expect(errorOf(await client.begin(bomb(16 * 2 ** 20)))).toMatchObject({
      ...{ status: 400, details: { reason: 'TooManyDescriptors' } },
    })
    const layout = createLayout()
    const manifest = bomb(8 * 2 ** 20)
    layout.list({
      ...{ mediaType: 'application/vnd.oci.image.index.v1+json', digest: digestOf(manifest) },
      size: manifest.length,
    })
    const uid = await begin(layout.indexFile())
    expect(errorOf(await client.send(uid, manifest))).toMatchObject({ status: 400 })
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(200e6)
  })

  it('content that was removed under the daemon is not said to be there, and may be uploaded again', async () => {
    const [published, unfinished] = [imageLayout(['a']), imageLayout(['b'])]
    expect((await client.upload(published)).statusCode).toBe(201)
    await begin(unfinished.indexFile())
    await rm(content(), { recursive: true })
    for (const layout of [published, unfinished]) expect((await client.upload(layout)).statusCode).toBe(201)
  })

  it('a blob that the upload had from the host is missing again once it was found damaged', async () => {
    const [one, two] = [imageLayout(['shared', 'a'], 'a:1'), imageLayout(['shared', 'b'], 'b:1')]
    expect((await client.upload(one)).statusCode).toBe(201)
    const uid = await begin(two.indexFile())
    await client.sendAll(uid, two)
    const shared = Buffer.from('shared')
    const hex = digestOf(shared).slice(7)
    await rename(content('blobs', 'sha256', hex), content('damaged', hex))
    expect(errorOf(await client.publish(uid))).toMatchObject({ code: 'BlobsMissing' })
    expect(await client.missing(uid)).toMatchObject([{ digest: digestOf(shared), heldBytes: 0 }])
    await client.sendAll(uid, two)
    expect((await client.publish(uid)).statusCode).toBe(201)
  })

  it('the blobs of a large manifest become known', async () => {
    const layout = imageLayout(Array.from({ length: 2_500 }, (_, each) => `layer ${each}`))
    const uid = await begin(layout.indexFile())
    const [manifest] = await client.missing(uid)
    expect(manifest!.sizeBytes).toBeGreaterThan(262_144)
    await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)
    expect(await client.missing(uid)).toHaveLength(2_501)
  })

  it('two requests with one new index at the same time begin one upload', async () => {
    const index = imageLayout().indexFile()
    const replies = await Promise.all([1, 2, 3].map(() => client.begin(index)))
    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([200, 200, 201])
    expect(new Set(replies.map((reply) => reply.json<{ uid: string }>().uid)).size).toBe(1)
  })

  it('a blob that a bundle has is not missing', async () => {
    await client.upload(imageLayout(['shared', 'old']))
    const layout = imageLayout(['shared', 'new'], 'registry.example/app:2')
    const uid = await begin(layout.indexFile())
    const [manifest] = await client.missing(uid)
    await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)
    const missing = (await client.missing(uid)).map(({ digest }) => digest)
    expect(missing).not.toContain(digestOf(Buffer.from('shared')))
    expect(missing).toContain(digestOf(Buffer.from('new')))
    await client.sendAll(uid, layout)
    expect((await client.publish(uid)).statusCode).toBe(201)
  })

  it('a manifest that the store has is read, and needs not be sent', async () => {
    const layout = imageLayout()
    await client.upload(layout)
    const more = imageLayout()
    more.list(more.image({ layers: ['second'] }))
    const uid = await begin(more.indexFile())
    expect((await client.missing(uid)).length).toBe(1)
  })

  it('a child of an index is optional, and what it names is needed once it is sent', async () => {
    const layout = createLayout()
    const [here, other] = [
      layout.image({ layers: ['a'] }),
      layout.image({ layers: ['b'], architecture: 'arm64' }),
    ]
    layout.list(layout.index([here, other]))
    const uid = await begin(layout.indexFile())
    const [index] = await client.missing(uid)
    await client.send(uid, layout.blobs.get(index!.digest.slice(7))!)
    expect((await client.missing(uid)).map(({ isOptional }) => isOptional)).toEqual([true, true])
    await client.send(uid, layout.blobs.get(here.digest.slice(7))!)
    const needed = (await client.missing(uid)).filter(({ isOptional }) => !isOptional)
    expect(needed.length).toBe(2)
    for (const { digest } of needed) await client.send(uid, layout.blobs.get(digest.slice(7))!)
    expect((await client.publish(uid)).statusCode).toBe(201)
  })
})

describe('PATCH of a blob', () => {
  let uid: string
  const bytes = Buffer.from('0123456789'.repeat(1_000))
  const digest = digestOf(bytes)
  beforeEach(async () => {
    const layout = imageLayout([bytes.toString()])
    uid = await begin(layout.indexFile())
    const [manifest] = await client.missing(uid)
    await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)
  })

  it('appends, and a wrong offset is 416 with the right one', async () => {
    const first = await client.patch(uid, digest, bytes.subarray(0, 4_000), 'bytes 0-3999/10000')
    expect([first.statusCode, first.headers['upload-offset']]).toEqual([204, '4000'])
    for (const [from, to] of [
      [0, 3_999],
      [3_999, 9_999],
      [4_001, 9_999],
    ] as const) {
      const reply = await client.patch(uid, digest, bytes.subarray(from, to + 1), `bytes ${from}-${to}/10000`)
      expect(errorOf(reply)).toMatchObject({ status: 416, code: 'WrongOffset', details: { offset: 4_000 } })
      expect(reply.headers['upload-offset']).toBe('4000')
    }
    const held = (await client.missing(uid)).find((blob) => blob.digest === digest)
    expect(held).toMatchObject({ sizeBytes: 10_000, heldBytes: 4_000 })
    expect((await client.send(uid, bytes, 4_000)).headers['upload-offset']).toBe('10000')
    expect((await client.missing(uid)).map((blob) => blob.digest)).not.toContain(digest)
    expect(errorOf(await client.send(uid, bytes))).toMatchObject({ status: 416, details: { offset: 10_000 } })
  })

  it('bytes with another digest are refused at the last one, and thrown away', async () => {
    await client.patch(uid, digest, bytes.subarray(0, 4_000), '0-3999')
    const wrong = Buffer.from(bytes)
    wrong[9_999] = 0
    const reply = await client.patch(uid, digest, wrong.subarray(4_000), 'bytes 4000-9999/*')
    expect(errorOf(reply)).toMatchObject({
      status: 400,
      code: 'DigestMismatch',
      details: { found: digestOf(wrong) },
    })
    expect((await client.missing(uid)).find((blob) => blob.digest === digest)?.heldBytes).toBe(0)
    expect((await client.send(uid, bytes)).statusCode).toBe(204)
  })

  it.each([
    ['no range', undefined, 400],
    ['a range that ends before it begins', 'bytes 5-4/10000', 400],
    ['a range in words', 'all', 400],
    ['the size of another blob', 'bytes 0-9999/10001', 400],
    ['a range beyond the end', 'bytes 0-10000/*', 400],
    ['a body longer than its range', 'bytes 0-99/10000', 400],
  ])('%s is refused', async (_, range, status) => {
    const reply = await client.patch(uid, digest, bytes, range)
    expect(errorOf(reply)).toMatchObject({ status, details: { field: 'content-range' } })
    expect((await client.missing(uid)).find((blob) => blob.digest === digest)?.isManifest).toBe(false)
  })

  it('a body that ends early keeps what arrived', async () => {
    const reply = await client.patch(uid, digest, bytes.subarray(0, 500), 'bytes 0-9999/10000')
    expect(errorOf(reply)).toMatchObject({ status: 400 })
    expect((await client.send(uid, bytes, 500)).statusCode).toBe(204)
  })

  it('a blob that nothing names, an unknown upload and a digest in another form are refused', async () => {
    expect(errorOf(await client.send(uid, Buffer.from('unknown')))).toMatchObject({ status: 404 })
    const nowhere = '00000000-0000-4000-8000-000000000000'
    expect(errorOf(await client.send(nowhere, bytes))).toMatchObject({ status: 404 })
    const upper = await client.patch(uid, digest.toUpperCase(), bytes, 'bytes 0-9999/10000')
    expect(errorOf(upper)).toMatchObject({ status: 400, code: 'BadRequest' })
  })

  it('a manifest that breaks a rule is refused and thrown away', async () => {
    const layout = createLayout()
    layout.list(layout.put('{"schemaVersion":1}', 'application/vnd.oci.image.manifest.v1+json'))
    const bad = await begin(layout.indexFile())
    const [blob] = layout.blobs.values()
    expect(errorOf(await client.send(bad, blob!))).toMatchObject({ status: 400, code: 'BundleInvalid' })
    expect(await client.missing(bad)).toMatchObject([{ heldBytes: 0 }])
  })
})

describe('bounds, refusals and signatures', () => {
  it('what is no index.json is refused and leaves nothing', async () => {
    for (const index of ['', 'no JSON', '{"schemaVersion":2,"manifests":[]}', '['.repeat(100_000)]) {
      const reply = await client.begin(Buffer.from(index))
      expect(reply.statusCode, index.slice(0, 20)).toBe(400)
    }
    expect(await readdir(content('uploads'))).toEqual([])
  })

  it('more unfinished uploads than allowed are refused until one is deleted', async () => {
    await edge.stop()
    await start({ content: { ...noReserve, upload: { maximum: 1, unfinished: 2, keptDays: 7 } } })
    const [first] = await Promise.all([1, 2].map((tag) => begin(imageLayout(['x'], `a:${tag}`).indexFile())))
    const third = imageLayout(['x'], 'a:3').indexFile()
    expect(errorOf(await client.begin(third))).toMatchObject({ status: 503, code: 'TooManyUploads' })
    expect((await client.remove(first!)).statusCode).toBe(204)
    expect((await client.begin(third)).statusCode).toBe(201)
  })

  it('with a signing key the signature of index.json is checked before anything else', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    await edge.stop()
    await start({ signingKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() })
    const signed = (index: Buffer, key = privateKey) => ({
      name: 'signature',
      fileName: 's',
      content: createSign('sha256').update(index).sign(key),
    })
    const broken = Buffer.from('no JSON')
    expect(errorOf(await client.begin(broken))).toMatchObject({ code: 'SignatureMissing' })
    expect(errorOf(await client.begin(broken, signed(broken, other.privateKey)))).toMatchObject({
      code: 'SignatureInvalid',
    })
    expect(errorOf(await client.begin(broken, signed(broken)))).toMatchObject({ code: 'BundleInvalid' })
    const index = imageLayout().indexFile()
    expect((await client.begin(index, signed(index))).statusCode).toBe(201)
  })

  it('lists and shows uploads with bytes and phase', async () => {
    const layout = imageLayout(['x'.repeat(1_000)])
    const uid = await begin(layout.indexFile())
    const [manifest] = await client.missing(uid)
    await client.send(uid, layout.blobs.get(manifest!.digest.slice(7))!)
    const shown = (await client.show(uid)).json<{
      totalBytes: number
      receivedBytes: number
      missingBytes: number
    }>()
    const total = [...layout.blobs.values()].reduce((sum, { length }) => sum + length, 0)
    expect(shown).toMatchObject({ uid, kind: 'blobs', phase: 'receiving', totalBytes: total })
    expect(shown.receivedBytes + shown.missingBytes).toBe(total)
    await begin(imageLayout(['y']).indexFile())
    const page = (await client.list('?limit=1&orderBy=uid=1')).json<{
      items: unknown[]
      listmeta: { count: number }
    }>()
    expect([page.items.length, page.listmeta.count]).toEqual([1, 2])
  })
})
