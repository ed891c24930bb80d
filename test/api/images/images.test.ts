import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { HostImage, ImageSource } from '../../../src/images/schemas.ts'
import { contentClient, digestOf, noReserve, type ContentClient } from '../../support/content-uploads.ts'
import {
  dockerImages,
  playDocker,
  podmanRoot,
  playSocket,
  type Played,
} from '../../support/image-runtimes.ts'
import { createLayout } from '../../support/layouts.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/content/images'
let root: string
let edge: TestEdge
let client: ContentClient
let viewer: string
let played: Played | undefined
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'images-'))
  mkdirSync(join(root, 'run'))
})
afterEach(async () => {
  await edge.stop()
  await played?.stop()
  played = undefined
  rmSync(root, { recursive: true })
})

async function start(runtimeRoot = root) {
  edge = await createTestEdge({ content: noReserve, runtimeRoot })
  client = contentClient(edge, (await edge.login('alice')).access)
  viewer = (await edge.login('bob')).access
}

interface List {
  readonly items: HostImage[]
  readonly listmeta: { readonly count: number; readonly continue: string }
  readonly sources: ImageSource[]
}
const list = async (query = '') => (await edge.get(`${path}${query}`, viewer)).json<List>()
const filtered = async (filters: string) => (await list(`?filters=${encodeURIComponent(filters)}`)).items

/** A bundle with one image for each platform. */
function layoutOf(name: string, ...architectures: string[]) {
  const layout = createLayout()
  const children = architectures.map((architecture) =>
    layout.image({
      architecture,
      layers: [`${name} ${architecture}`],
      more: { platform: { os: 'linux', architecture } },
    }),
  )
  const index = layout.index(children)
  layout.list(index, { 'io.containerd.image.name': name })
  return { layout, digest: index.digest }
}

it('a viewer sees the images of the content and of a runtime as one list, by pages and by filters', async () => {
  await start(podmanRoot)
  const { layout, digest } = layoutOf('busybox:1.36', 'amd64', 'arm64')
  expect((await client.upload(layout)).statusCode).toBe(201)
  const { items, listmeta, sources } = await list()
  expect(items.map(({ title, canBePulledHere }) => ({ title, canBePulledHere }))).toEqual([
    { title: '127.0.0.1:5998/plant/multi:2', canBePulledHere: false },
    { title: 'docker.io/library/busybox:1.36', canBePulledHere: true },
    { title: 'registry.example/plant/app:1', canBePulledHere: false },
  ])
  expect(items[1]).toMatchObject({
    ...{ id: digest, digest, locations: [{ runtime: 'store', endpoint: '', namespace: '' }] },
    names: [{ name: 'docker.io/library/busybox', tag: '1.36', hasTag: true }],
    platforms: [
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64' },
    ],
  })
  expect(listmeta.count).toBe(3)
  expect(sources).toMatchObject([
    { runtime: 'store', state: 'read', images: 1 },
    { runtime: 'podman', state: 'read', images: 2, endpoint: '/var/lib/containers/storage' },
  ])

  const first = await list('?limit=2')
  const second = await list(`?limit=2&continue=${first.listmeta.continue}`)
  expect([...first.items, ...second.items]).toEqual(items)
  expect(await filtered('locations.runtime=podmanANDnames.name=registry.example/plant/multi')).toEqual([
    items[0],
  ])
  expect(await filtered('locations.runtime=storeORplatforms.architecture=arm64')).toEqual([items[1]])
  expect(await filtered('canBePulledHere=false')).toHaveLength(2)
  const refusal = await edge.get(`${path}?orderBy=names.name%3D1`, viewer)
  expect([refusal.statusCode, refusal.json<ErrorReply>().details]).toMatchObject([400, { field: 'orderBy' }])
})

it('the list follows the content: uploads, deletions, and blobs that are found damaged', async () => {
  await start()
  expect((await list()).items).toEqual([])
  const one = layoutOf('one:1', 'amd64')
  const two = layoutOf('two:1', 'amd64')
  const uid = (await client.upload(one.layout)).json<{ uid: string }>().uid
  await client.upload(two.layout)
  const pullable = async () =>
    Object.fromEntries((await list()).items.map((each) => [each.digest, each.canBePulledHere]))
  expect(await pullable()).toEqual({ [one.digest]: true, [two.digest]: true })

  const hex = digestOf(Buffer.from('two:1 amd64')).slice(7)
  const content = join(edge.stateDirectory, 'content')
  await rename(join(content, 'blobs/sha256', hex), join(content, 'damaged', hex))
  await edge.content.jobs?.find(({ name }) => name === 'content-sweep')?.run()
  expect(await pullable()).toEqual({ [one.digest]: true, [two.digest]: false })

  const removed = await edge.app.inject({
    ...{ method: 'DELETE', url: `/v1/edge-mgmt/content/bundles/${uid}` },
    headers: { authorization: (await edge.login('alice')).access },
  })
  expect(removed.statusCode).toBe(204)
  expect(await pullable()).toEqual({ [two.digest]: false })
})

it('of one bundle with a damaged blob, only the images that need the blob cannot be pulled', async () => {
  await start()
  const layout = createLayout()
  const images = ['a', 'b'].map((name) => layout.image({ layers: [name, 'shared'] }))
  images.forEach((image, at) => layout.list(image, { 'io.containerd.image.name': `plant/image-${at}:1` }))
  await client.upload(layout)
  const hex = digestOf(Buffer.from('a')).slice(7)
  const content = join(edge.stateDirectory, 'content')
  await rename(join(content, 'blobs/sha256', hex), join(content, 'damaged', hex))
  await edge.content.jobs?.find(({ name }) => name === 'content-sweep')?.run()
  expect((await list()).items.map(({ canBePulledHere }) => canBePulledHere)).toEqual([false, true])
})

it('an image that is here only for another architecture cannot be pulled here', async () => {
  await start()
  await client.upload(layoutOf('foreign:1', 'arm64').layout)
  expect((await list()).items).toMatchObject([
    { canBePulledHere: false, platforms: [{ architecture: 'arm64' }] },
  ])
})

it('a runtime is read again when asked, and one that answers nonsense is named beside the list', async () => {
  await start()
  let images = dockerImages().slice(0, 1)
  played = await playDocker(join(root, 'run/docker.sock'), () => images)
  expect((await list('?refresh=true')).items).toHaveLength(1)
  images = dockerImages()
  expect((await list()).items).toHaveLength(1)
  const { items, sources } = await list('?refresh=true')
  expect(items).toHaveLength(5)
  const { readAt } = sources[1] ?? {}
  expect(sources[1]).toMatchObject({ runtime: 'docker', state: 'read', images: 5 })

  await played.stop()
  played = await playSocket(join(root, 'run/docker.sock'), (socket) =>
    socket.once('data', () => socket.end('nonsense\r\n\r\n')),
  )
  const later = await list('?refresh=true')
  expect(later.items).toEqual(items)
  expect(later.sources[1]).toMatchObject({ state: 'failed', images: 5, readAt })
  expect(later.sources[1]?.message).toMatch(
    /^its answer is not understood: .*; try: systemctl status docker$/,
  )
})

it('while the content cannot be used, the images of the runtimes are listed and the problem is named', async () => {
  edge = await createTestEdge({
    ...{ content: { ...noReserve, directory: '/dev/null/content' } },
    runtimeRoot: podmanRoot,
  })
  viewer = (await edge.login('bob')).access
  const { items, sources } = await list()
  expect(items).toHaveLength(2)
  expect(sources[0]).toMatchObject({ runtime: 'store', state: 'failed', images: 0 })
  expect(sources[0]?.message).toContain('cannot be read or written')
})
