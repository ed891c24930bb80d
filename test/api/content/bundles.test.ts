import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Bundle, BundleEntry, ContentUsage } from '../../../src/content/schemas.ts'
import { digestOfBytes, hexOfBytes, putBundle, type TestBundle } from '../../support/content-bundles.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/content/bundles'
const details = '/v1/edge-mgmt/edgehosts/current/uploaded-content/details'
const uids = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'] as const
const [red, green] = [Buffer.from('red'), Buffer.from('green')]
const platforms = [{ os: 'linux', architecture: 'arm64', digest: digestOfBytes(red), isCarried: true }]
const busybox = { name: 'docker.io/library/busybox', tag: '1.36' }

let stateDirectory: string
let edge: TestEdge
let viewer: string
let admin: string
beforeEach(async () => {
  stateDirectory = await mkdtemp(join(tmpdir(), 'edgehostd-bundles-'))
  edge = await createTestEdge({ stateDirectory })
  viewer = (await edge.login('bob')).access
  admin = (await edge.login('alice')).access
})
afterEach(async () => {
  await edge.stop()
  await rm(stateDirectory, { recursive: true, force: true })
})

const put = (uid: string, bundle: TestBundle) => putBundle(stateDirectory, uid, bundle)
const putTwo = async () => {
  await put(uids[0], { name: 'old', blobs: [red], entries: [{ ...busybox, platforms }], publishedAt: 1_000 })
  await put(uids[1], { name: 'new', blobs: [green, red], entries: [busybox], publishedAt: 2_000 })
}
const get = async <T>(url: string, token = viewer) => (await edge.get(url, token)).json<T>()
const remove = (url: string, token = admin) =>
  edge.app.inject({ method: 'DELETE', url, headers: { authorization: token } })
const blobs = async () => readdir(join(stateDirectory, 'content', 'blobs', 'sha256'))
interface List<Item> {
  readonly items: Item[]
  readonly listmeta: { readonly count: number; readonly continue: string }
}

it('the list shows published bundles, the newest first, and marks those for another architecture', async () => {
  await putTwo()
  const { items, listmeta } = await get<List<Bundle>>(path)
  expect(listmeta.count).toBe(2)
  expect(items).toMatchObject([
    {
      uid: uids[1],
      name: 'new',
      publishedAt: '1970-01-01T00:00:02.000Z',
      images: 1,
      isForeign: false,
      isPinned: false,
    },
    { uid: uids[0], name: 'old', architectures: ['arm64'], isForeign: true, damagedBlobs: 0, holders: [] },
  ])
  const foreign = await get<List<Bundle>>(`${path}?filters=isForeign=true&fields=name`)
  expect(foreign.items).toEqual([{ name: 'old' }])
  expect(await get<Bundle>(`${path}/${uids[0]}`)).toEqual(items[1])
})

it('of two bundles with one tag the newest has it, and the entries say so until it is deleted', async () => {
  await putTwo()
  const entryOf = async (uid: string) => (await get<List<BundleEntry>>(`${path}/${uid}/entries`)).items[0]
  expect(await entryOf(uids[0])).toMatchObject({
    ...busybox,
    hasTag: false,
    digest: digestOfBytes(red),
    platforms,
  })
  expect(await entryOf(uids[1])).toMatchObject({ ...busybox, hasTag: true, digest: digestOfBytes(green) })
  expect((await remove(`${path}/${uids[1]}`)).statusCode).toBe(204)
  expect(await entryOf(uids[0])).toMatchObject({ hasTag: true })
})

it('the entries of a bundle are a list: pages, filters and order', async () => {
  const entries = Array.from({ length: 120 }, (_, at) => ({ name: `docker.io/library/i${at}`, tag: '1' }))
  await put(uids[0], { name: 'many', blobs: [red], entries })
  const seen: string[] = []
  for (let token = ''; ;) {
    const page = await get<List<BundleEntry>>(`${path}/${uids[0]}/entries?limit=50&continue=${token}`)
    seen.push(...page.items.map(({ name }) => name))
    expect(page.listmeta.count).toBe(120)
    token = page.listmeta.continue
    if (token === '') break
  }
  expect(seen).toEqual(entries.map(({ name }) => name))
  const one = await get<List<BundleEntry>>(
    `${path}/${uids[0]}/entries?filters=name=docker.io/library/i7&fields=name,hasTag`,
  )
  expect(one.items).toEqual([{ name: 'docker.io/library/i7', hasTag: true }])
  const last = await get<List<BundleEntry>>(`${path}/${uids[0]}/entries?orderBy=name=-1&limit=1`)
  expect(last.items[0]?.name).toBe('docker.io/library/i99')
})

it('a dry run says what would go and deletes nothing; a deletion removes what no other bundle has', async () => {
  await putTwo()
  const plan = await remove(`${path}/${uids[1]}?dryRun=true`)
  expect(plan.statusCode).toBe(200)
  const index = (await get<Bundle>(`${path}/${uids[1]}`)).indexDigest.slice(7)
  expect(plan.json()).toMatchObject({ uid: uids[1], name: 'new', blobs: 2, entries: 1, holders: [] })
  expect(await blobs()).toContain(hexOfBytes(green))
  const reply = await remove(`${path}/${uids[1]}`)
  expect(reply.statusCode).toBe(204)
  expect(await blobs()).not.toContain(hexOfBytes(green))
  expect(await blobs()).not.toContain(index)
  expect(await blobs()).toContain(hexOfBytes(red))
  expect((await remove(`${path}/${uids[1]}`)).statusCode).toBe(404)
  const { items } = await get<List<{ spec: { message: string; resource: object; outcome: string } }>>(
    '/v1/edge-mgmt/edgehosts/current/audits?filters=spec.resource.kind=bundle',
    admin,
  )
  expect(items.map(({ spec }) => spec.outcome)).toEqual(['refused', 'success', 'success'])
  expect(items[1]?.spec.resource).toEqual({ kind: 'bundle', name: 'new', uid: uids[1] })
})

it('a query name that is not known, or an empty dryRun, deletes nothing, as it may be a dry run that was meant', async () => {
  await putTwo()
  for (const [query, field, message] of [
    ['dryrun=true', 'dryrun', 'dryrun is misspelt; write dryRun'],
    ['dryRun=true&force=1', 'force', 'force is not known; only dryRun may be given'],
    ['dryRun=', 'dryRun', 'dryRun must be boolean'],
  ] as const) {
    const reply = await remove(`${path}/${uids[1]}?${query}`)
    expect([reply.statusCode, reply.json()]).toMatchObject([
      400,
      { code: 'BadRequest', message, details: { field } },
    ])
  }
  expect((await get<List<Bundle>>(path)).items).toHaveLength(2)
})

it('a bundle that only this one carries what is pinned of is not deleted, and says what needs it', async () => {
  await putTwo()
  const { content } = edge
  await content.pin('cluster edge-1', ['busybox:1.36'])
  expect(await content.find('busybox:1.36')).toMatchObject({
    bundle: { uid: uids[1] },
    isWhole: true,
    kind: 'image',
  })
  const refused = await remove(`${path}/${uids[1]}`)
  expect(refused.statusCode).toBe(409)
  expect(refused.json()).toMatchObject({ code: 'ContentInUse', details: { holders: ['cluster edge-1'] } })
  expect((await remove(`${path}/${uids[1]}?dryRun=true`)).json()).toMatchObject({
    holders: ['cluster edge-1'],
  })
  expect(await get<Bundle>(`${path}/${uids[1]}`)).toMatchObject({
    isPinned: true,
    holders: ['cluster edge-1'],
  })
  expect((await remove(`${path}/${uids[0]}`)).statusCode).toBe(204)
  await content.unpin('cluster edge-1')
  expect((await remove(`${path}/${uids[1]}`)).statusCode).toBe(204)
})

it('a pin on what is not here is refused and the old pins stay', async () => {
  await putTwo()
  const { content } = edge
  await content.pin('cluster edge-1', ['busybox:1.36'])
  await expect(content.pin('cluster edge-1', ['nginx'])).rejects.toMatchObject({ code: 'NotFound' })
  expect((await remove(`${path}/${uids[1]}`)).statusCode).toBe(409)
})

it.each([
  '',
  '{',
  'null',
  '[]',
  '"cluster"',
  '{"the cluster of this host":1}',
  '{"a":["sha256:1",2]}',
  '\0\0\0',
])(
  'what the cluster needs is pinned after a start that finds %j in pins.json, and while the content of it is away',
  async (damaged) => {
    await putTwo()
    plantCluster(edge, [digestOfBytes(green), digestOfBytes(Buffer.from('away'))])
    await edge.stop()
    await writeFile(join(stateDirectory, 'content', 'pins.json'), damaged)
    edge = await createTestEdge({ stateDirectory })
    admin = (await edge.login('alice')).access
    await edge.daemon.rooms.cluster.jobs?.find(({ name }) => name === 'cluster-content')?.run()
    const refused = await remove(`${path}/${uids[1]}`)
    expect([refused.statusCode, refused.json()]).toMatchObject([
      409,
      { code: 'ContentInUse', message: /is needed by the cluster of this host/ },
    ])
    expect((await remove(`${path}/${uids[0]}`)).statusCode).toBe(204)
    await put(uids[0], { name: 'back', blobs: [Buffer.from('away')], entries: [{}], publishedAt: 3_000 })
    expect((await remove(`${path}/${uids[0]}`)).statusCode).toBe(409)
  },
)

it('the uploaded content is a 404 while nothing was published', async () => {
  const nothing = await edge.get(details, viewer)
  expect(nothing.statusCode).toBe(404)
  expect(nothing.json()).toMatchObject({ code: 'NotFound' })
})

it('the uploaded content shows name, size and the digest of index.json of an upload blob by blob', async () => {
  await putTwo()
  const { indexDigest, sizeBytes } = await get<Bundle>(`${path}/${uids[1]}`)
  expect(await get(details)).toEqual({
    fileName: 'new',
    sha256Hash: indexDigest.slice(7),
    sizeInBytes: sizeBytes,
    sizeInMiB: 0,
    sizeInGiB: 0,
    uploadDateTime: '1970-01-01T00:00:02.000Z',
  })
})

it('the usage counts equal blobs once and keeps the reserve', async () => {
  await putTwo()
  const usage = await get<ContentUsage>('/v1/edge-mgmt/content/usage')
  const { items } = await get<List<Bundle>>(path)
  expect(usage.bundleBytes).toBe(items.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0))
  expect(usage.sharedBytes).toBe(red.length)
  expect(usage.storedBytes).toBe(usage.bundleBytes - red.length)
  expect(usage.fileSystem.directory).toBe(join(stateDirectory, 'content'))
  expect(usage.fileSystem.reserveBytes).toBeGreaterThanOrEqual(2_147_483_648)
  expect(usage.fileSystem.mountPoint).toMatch(/^\//)
  expect(usage.isComplete).toBe(true)
})

it.each([
  [`${path}/not-a-uid`, 400],
  [`${path}/33333333-3333-4333-8333-333333333333`, 404],
  [`${path}/33333333-3333-4333-8333-333333333333/entries`, 404],
  [`${path}?orderBy=colour=1`, 400],
  [`${path}/${uids[0]}/entries?filters=colour=red`, 400],
])('%s is %i', async (url, status) => {
  await putTwo()
  const reply = await edge.get(url, viewer)
  expect([reply.statusCode, reply.json<ErrorReply>().message]).toEqual([status, expect.any(String)])
})

it('a folder that cannot be used is a 503 that says so, and the next request tries again', async () => {
  await writeFile(join(stateDirectory, 'content'), 'a file where the folder should be')
  const reply = await edge.get(path, viewer)
  expect([reply.statusCode, reply.json()]).toMatchObject([503, { code: 'ContentUnavailable' }])
  await rm(join(stateDirectory, 'content'))
  expect(await get<List<Bundle>>(path)).toMatchObject({ items: [] })
})
