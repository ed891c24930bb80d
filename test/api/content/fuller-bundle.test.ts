import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { contentClient, layoutTar, noReserve, type ContentClient } from '../../support/content-uploads.ts'
import { createLayout, type TestDescriptor, type TestLayout } from '../../support/layouts.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
let client: ContentClient
let token: string
beforeEach(async () => {
  edge = await createTestEdge({ content: noReserve })
  token = (await edge.login('alice')).access
  client = contentClient(edge, token)
})
afterEach(() => edge.stop())

const architectures = ['amd64', 'arm64', 'riscv64'] as const
type Architecture = (typeof architectures)[number]

/** An image of three platforms, as `ctr images export` writes it: index.json is the same, whichever platforms are carried. */
function carrying(...carried: Architecture[]): TestLayout {
  const layout = createLayout()
  const images = new Map<Architecture, TestDescriptor>()
  for (const architecture of architectures)
    images.set(architecture, layout.image({ architecture, layers: ['shared', `of ${architecture}`] }))
  layout.list(layout.index([...images.values()]), { 'io.containerd.image.name': 'registry.example/app:1' })
  const kept = createLayout()
  for (const architecture of carried) kept.image({ architecture, layers: ['shared', `of ${architecture}`] })
  for (const [hex] of layout.blobs)
    if (!kept.blobs.has(hex) && hex !== indexOf(layout)) layout.remove(`sha256:${hex}`)
  return layout
}

const indexOf = (layout: TestLayout) =>
  (
    JSON.parse(layout.indexFile().toString()) as { manifests: { digest: string }[] }
  ).manifests[0]!.digest.slice(7)

async function get<T>(path: string): Promise<T> {
  const url = `/v1/edge-mgmt/content/${path}`
  return (await edge.app.inject({ url, headers: { authorization: token } })).json<T>()
}
interface Shown {
  readonly uid: string
  readonly publishedAt: string
  readonly blobCount: number
  readonly architectures: string[]
}
const bundles = async () => (await get<{ items: Shown[] }>('bundles')).items
async function expectServed(layout: TestLayout): Promise<void> {
  for (const [hex, bytes] of layout.blobs)
    expect(await readFile(join(edge.stateDirectory, 'content', 'blobs', 'sha256', hex))).toEqual(bytes)
}

it('a file with more platforms and the same index gives them to the bundle, which then has those of both', async () => {
  const first = await client.sendFile(layoutTar(carrying('amd64')))
  const { uid } = first.json<{ uid: string }>()
  const [before] = await bundles()

  const second = await client.sendFile(layoutTar(carrying('arm64')))
  expect([second.statusCode, second.json()]).toMatchObject([200, { uid }])
  expect(second.json<{ message: string }>().message).toContain('3 blobs that it lacked were added')
  await expectServed(carrying('amd64', 'arm64'))
  const [after, ...none] = await bundles()
  expect(none).toEqual([])
  expect(after).toMatchObject({ uid, publishedAt: before!.publishedAt, architectures: ['amd64', 'arm64'] })
  expect(after!.blobCount).toBe(before!.blobCount + 3)

  const less = await client.sendFile(layoutTar(carrying('amd64')))
  expect([less.statusCode, less.json<{ message: string }>().message]).toEqual([
    200,
    'the host has the bundle bundle already',
  ])
  expect(await bundles()).toEqual([after])
  expect(await get('uploads')).toMatchObject({ items: [] })
})

it('a file whose further platform is not whole is refused, and the bundle stays as it is', async () => {
  await client.sendFile(layoutTar(carrying('amd64')))
  const before = await bundles()
  const broken = carrying('amd64', 'arm64')
  for (const [hex, bytes] of broken.blobs) if (bytes.toString() === 'of arm64') broken.remove(`sha256:${hex}`)
  const refused = await client.sendFile(layoutTar(broken))
  expect([refused.statusCode, refused.json()]).toMatchObject([400, { code: 'BundleIncomplete' }])
  expect(await bundles()).toEqual(before)
})

it('blob by blob, a bundle that lacks platforms may be begun again: only these are missing, and optional', async () => {
  const first = await client.upload(carrying('amd64'))
  const { uid } = first.json<{ uid: string }>()
  const full = carrying(...architectures)
  const begun = await client.begin(full.indexFile())
  expect([begun.statusCode, begun.json()]).toMatchObject([201, { isPublished: false }])
  const upload = begun.json<{ uid: string }>().uid
  expect(upload).not.toBe(uid)
  const missing = await client.missing(upload)
  expect(missing.map(({ isOptional, isManifest }) => [isOptional, isManifest])).toEqual([
    [true, true],
    [true, true],
  ])
  await client.sendAll(upload, full)
  const published = await client.publish(upload)
  expect([published.statusCode, published.json()]).toMatchObject([200, { uid }])
  await expectServed(full)
  const again = await client.begin(full.indexFile())
  expect([again.statusCode, again.json()]).toMatchObject([200, { uid, isPublished: true }])
})

it('an upload that was begun again and brings nothing is published with 200, and nothing changes', async () => {
  await client.upload(carrying('amd64'))
  const before = await bundles()
  const { uid } = (await client.begin(carrying('amd64').indexFile())).json<{ uid: string }>()
  const published = await client.publish(uid)
  expect([published.statusCode, published.json()]).toMatchObject([200, { uid: before[0]!.uid }])
  expect(await bundles()).toEqual(before)
  expect(await get('uploads')).toMatchObject({ items: [] })
})

it.each([
  ['as a file', (layout: TestLayout) => client.sendFile(layoutTar(layout))],
  ['blob by blob', (layout: TestLayout) => client.upload(layout)],
])('the same bundle %s again mends what the disk has altered without notice', async (_way, sendAgain) => {
  const layout = carrying('amd64', 'arm64', 'riscv64')
  expect((await client.sendFile(layoutTar(layout))).statusCode).toBe(201)
  const [hex = ''] = [...layout.blobs.keys()]
  const file = join(edge.stateDirectory, 'content', 'blobs', 'sha256', hex)
  const bytes = await readFile(file)
  await writeFile(file, Buffer.alloc(bytes.length, 'X'))
  expect((await sendAgain(layout)).statusCode).toBe(200)
  await expectServed(layout)
  expect(await readdir(join(edge.stateDirectory, 'content', 'damaged'))).toEqual([])
})
