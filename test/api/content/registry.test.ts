import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type {
  ContentRegistry,
  ContentRegistryPassword,
  RegistryContentDetails,
  RegistryHealthDetails,
} from '../../../src/content/schemas.ts'
import { listAudits } from '../../support/audits.ts'
import { digestOfBytes, hexOfBytes, putBundle, type TestBundle } from '../../support/content-bundles.ts'
import {
  createTestEdge,
  type ErrorReply,
  type TestEdge,
  type TestEdgeOptions,
} from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/content/registry'
const cluster = '/v1/edge-mgmt/cluster/registry'
const uids = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'] as const
const [red, green, blue] = ['red', 'green', 'blue'].map((text) => Buffer.from(text)) as [
  Buffer,
  Buffer,
  Buffer,
]
const busybox = { name: 'docker.io/library/busybox', tag: '1.36' }

let stateDirectory: string
let edge: TestEdge
beforeEach(async () => {
  stateDirectory = await mkdtemp(join(tmpdir(), 'edgehostd-registry-'))
})
afterEach(async () => {
  await edge.stop()
  await rm(stateDirectory, { recursive: true, force: true })
})

const open = async (content: TestEdgeOptions['content'] = {}) => {
  edge = await createTestEdge({ stateDirectory, content })
  const tokens = { viewer: (await edge.login('bob')).access, admin: (await edge.login('alice')).access }
  return {
    ...tokens,
    get: async <T>(url: string, token = tokens.viewer) => (await edge.get(url, token)).json<T>(),
  }
}
const put = (uid: string, bundle: TestBundle) => putBundle(stateDirectory, uid, bundle)
const registrySettings = (more: object) => ({
  registry: { enabled: true, address: '127.0.0.1', port: 0, anonymous: false, ...more },
})

describe('how the registry is reached', () => {
  it('the registry is shown with the registries of the images, without its password', async () => {
    await put(uids[0], {
      name: 'images',
      blobs: [red, green, blue],
      entries: [
        busybox,
        { name: 'registry.example:5000/app', tag: '1' },
        { kind: 'chart', title: 'podinfo' },
      ],
    })
    const { get } = await open()
    await edge.daemon.start()
    const { port, ...shown } = await get<ContentRegistry>(path)
    expect(port).toBeGreaterThan(0)
    expect(shown).toEqual({
      isEnabled: true,
      address: '127.0.0.1',
      isTls: false,
      isAnonymous: false,
      isListening: true,
      username: 'edgehostd',
      hosts: ['docker.io', 'registry.example:5000'],
    })
  })

  it('a registry with TLS is shown with the certificate that clients have to trust', async () => {
    const { get } = await open(registrySettings({ address: '127.0.0.2' }))
    expect(await get<ContentRegistry>(path)).not.toHaveProperty('certificate')
    await edge.stop()
    const remote = await open(registrySettings({ address: '0.0.0.0' }))
    const shown = await remote.get<ContentRegistry>(path)
    expect(shown).toMatchObject({ isTls: true, address: '0.0.0.0' })
    expect(shown.certificate).toBe(await readFile(join(stateDirectory, 'tls', 'certificate.pem'), 'utf8'))
  })

  it('the password is read by administrators only, and the audit trail says who did', async () => {
    const { get, admin, viewer } = await open()
    await edge.daemon.start()
    const refused = await edge.get(`${path}/password`, viewer)
    expect(refused.statusCode).toBe(403)
    expect(await get<ContentRegistryPassword>(`${path}/password`, admin)).toEqual({
      username: 'edgehostd',
      password: (await readFile(join(stateDirectory, 'registry-password'), 'utf8')).trim(),
    })
    const { items } = await listAudits(edge, admin, '?filters=spec.resource.kind=registry-password')
    expect(items.map(({ spec: { outcome } }) => outcome)).toEqual(['success', 'refused'])
    expect(items[0]?.spec.actor.uid).toBe('alice')
    const head = { method: 'HEAD', url: `${path}/password`, headers: { authorization: admin } } as const
    expect((await edge.app.inject(head)).statusCode).toBe(405)
  })

  it('without a password that works, the reply says what to do instead', async () => {
    await writeFile(join(stateDirectory, 'registry-password'), 'short\n', { mode: 0o600 })
    const { admin, get } = await open()
    await edge.daemon.start()
    const reply = await edge.get(`${path}/password`, admin)
    expect([reply.statusCode, reply.json<ErrorReply>().message]).toEqual([
      503,
      expect.stringMatching(/registry-password.*remove it for a new one.*systemctl reload edgehostd/),
    ])
    const { State, Message } = await get<RegistryHealthDetails>(`${cluster}/health`)
    expect([State, Message]).toEqual(['Unhealthy', reply.json<ErrorReply>().message])
  })

  it('a registry that is switched off has no password', async () => {
    const { admin, get } = await open(registrySettings({ enabled: false }))
    expect((await edge.get(`${path}/password`, admin)).statusCode).toBe(404)
    expect(await get(path)).toMatchObject({ isEnabled: false, isListening: false })
  })
})

describe('the health of the registry', () => {
  const size = expect.stringMatching(/^\d+(\.\d)? [KMGT]?i?B$/) as string

  it('a registry that listens is healthy, and its disk is shown', async () => {
    const { get } = await open()
    await edge.daemon.start()
    const { port } = await get<ContentRegistry>(path)
    expect(await get(`${cluster}/health`)).toEqual({
      State: 'Healthy',
      Message: `the registry listens on http://127.0.0.1:${port}`,
      DiskCapacity: size,
      DiskUsed: size,
      DiskAvailable: size,
      UsagePercentage: expect.stringMatching(/^\d{1,3}%$/) as string,
    })
  })

  it('one that is switched off is not installed', async () => {
    const { get } = await open(registrySettings({ enabled: false }))
    expect(await get(`${cluster}/health`)).toMatchObject({
      State: 'NotInstalled',
      Message: expect.stringContaining('content.registry.enabled: true') as string,
      DiskCapacity: size,
    })
  })

  it('a taken port is named, and what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const { get } = await open(registrySettings({ port }))
    await edge.daemon.start()
    expect(await get(`${cluster}/health`)).toMatchObject({
      State: 'Unhealthy',
      Message: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${port}.*ss -ltnp`)) as string,
    })
    other.close()
  })

  it('damaged blobs and damaged records are named', async () => {
    await put(uids[0], { name: 'images', blobs: [red], entries: [busybox] })
    await put(uids[1], { name: 'damaged', blobs: [green], entries: [busybox] })
    await rm(join(stateDirectory, 'content', 'blobs', 'sha256', hexOfBytes(red)))
    await writeFile(join(stateDirectory, 'content', 'bundles', `${uids[1]}.jsonl`), 'nonsense')
    const { get } = await open()
    await edge.daemon.start()
    const { State, Message } = await get<RegistryHealthDetails>(`${cluster}/health`)
    expect(State).toBe('Unhealthy')
    expect(Message).toMatch(
      /record of a bundle is damaged.*upload that bundle again; blobs are damaged.*\(1\)/,
    )
  })

  it('a folder that cannot be read is named, and the reply has no sizes', async () => {
    await put(uids[0], { name: 'images', blobs: [red], entries: [busybox] })
    await rename(join(stateDirectory, 'content'), join(stateDirectory, 'elsewhere'))
    await writeFile(join(stateDirectory, 'content'), '')
    const { get } = await open()
    await edge.daemon.start()
    expect(await get(`${cluster}/health`)).toEqual({
      State: 'Unhealthy',
      Message: expect.stringContaining('cannot be read or written') as string,
    })
  })
})

describe('the content of the registry', () => {
  const list = async (get: <T>(url: string) => Promise<T>) =>
    (await get<{ status: RegistryContentDetails[] }>(`${cluster}/content/details`)).status

  it('equal entries of several bundles are one, since the first of them', async () => {
    const entries = [{ ...busybox, sizeBytes: 4_404_019 }]
    await put(uids[0], { name: 'old', blobs: [red], entries, publishedAt: 1_000 })
    await put(uids[1], { name: 'new', blobs: [red, green], entries, publishedAt: 2_000 })
    const { get } = await open()
    expect(await list(get)).toEqual([
      {
        name: busybox.name,
        version: busybox.tag,
        contentType: 'image',
        size: '4.2 MiB',
        dateAdded: '1970-01-01T00:00:01.000Z',
      },
    ])
  })

  it('an image whose tag a newer bundle has is there by its digest', async () => {
    await put(uids[0], { name: 'old', blobs: [red], entries: [busybox], publishedAt: 1_000 })
    await put(uids[1], { name: 'new', blobs: [green], entries: [busybox], publishedAt: 2_000 })
    const { get } = await open()
    expect((await list(get)).map(({ version, dateAdded }) => [version, dateAdded])).toEqual([
      [busybox.tag, '1970-01-01T00:00:02.000Z'],
      [digestOfBytes(red), '1970-01-01T00:00:01.000Z'],
    ])
  })

  it('an image with two tags is there twice; charts, programs and files have their titles', async () => {
    const image = { ...busybox, digest: digestOfBytes(red) }
    await put(uids[0], {
      name: 'all',
      blobs: [red, green, blue],
      entries: [
        image,
        { ...image, tag: 'latest' },
        { kind: 'chart', title: 'podinfo', version: '6.0.0' },
        { kind: 'file', title: 'note' },
        { kind: 'artifact' },
      ],
    })
    const { get } = await open()
    const rows = (await list(get)).map(({ contentType, name, version }) => [contentType, name, version])
    const index = expect.stringMatching(/^sha256:/) as string
    expect(rows).toEqual([
      ['artifact', index, index],
      ['artifact', 'note', index],
      ['chart', 'podinfo', '6.0.0'],
      ['image', busybox.name, '1.36'],
      ['image', busybox.name, 'latest'],
    ])
  })

  it('nothing is pending', async () => {
    const { get } = await open()
    expect(await get(`${cluster}/content/sync-status/details`)).toEqual({
      statusMessage: expect.stringContaining('Nothing is pending') as string,
      pendingItems: [],
      errors: {},
    })
  })

  it('of 20,000 images the newest 10,000 are listed', async () => {
    const tagged = (from: number) =>
      Array.from({ length: 10_000 }, (_, at) => ({ ...busybox, tag: `v${from + at}` }))
    await put(uids[0], { name: 'old', blobs: [red], entries: tagged(10_000), publishedAt: 1_000 })
    await put(uids[1], { name: 'new', blobs: [red], entries: tagged(0), publishedAt: 2_000 })
    const { get } = await open()
    const rows = await list(get)
    expect(rows).toHaveLength(10_000)
    // The one with the digest that the old bundle has too is not new.
    expect(rows.filter(({ dateAdded }) => dateAdded === '1970-01-01T00:00:02.000Z')).toHaveLength(9_999)
  })
})
