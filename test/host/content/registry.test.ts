import { mkdir, mkdtemp, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { startContentRegistry, type TestRegistry } from '../../support/content-registry.ts'
import { makeMaterial } from '../../support/https-server.ts'
import { createLayout, type TestDescriptor } from '../../support/layouts.ts'

let registry: TestRegistry
let amd64: TestDescriptor
let index: TestDescriptor
let layer: TestDescriptor

const basic = (password: string) => `Basic ${Buffer.from(`edgehostd:${password}`).toString('base64')}`
const named = (name: string) => ({ 'io.containerd.image.name': name })

beforeEach(async () => {
  registry = await startContentRegistry()
  const layout = createLayout()
  amd64 = layout.image({ layers: ['amd64'] })
  layer = layout.put('amd64', mediaTypes.layer)
  const arm64 = layout.image({ architecture: 'arm64', layers: ['arm64'] })
  index = layout.index([
    { ...amd64, platform: { os: 'linux', architecture: 'amd64' } },
    { ...arm64, platform: { os: 'linux', architecture: 'arm64' } },
  ])
  layout.remove(arm64.digest)
  layout.list(index, named('docker.io/library/busybox:1.36'))
  layout.list(amd64, named('quay.io/tools/app:2'))
  await registry.publish(layout)
})
afterEach(() => registry.stop())

const errorOf = (body: Buffer) =>
  (JSON.parse(body.toString()) as { errors: { code: string; message: string }[] }).errors[0]

it.each([
  ['containerd', '/v2/library/busybox/manifests/1.36?ns=docker.io'],
  ['podman and skopeo', '/v2/docker.io/library/busybox/manifests/1.36'],
  ['a client that names no host', '/v2/library/busybox/manifests/1.36'],
  ['a client that encodes the slash', '/v2/library%2Fbusybox/manifests/1.36'],
  ['a client with the short name', '/v2/busybox/manifests/1.36'],
])('an image is pulled by its tag, as %s asks for it', async (_client, path) => {
  const { status, headers, body } = await registry.ask(path)
  expect(status).toBe(200)
  expect(headers).toMatchObject({
    ...{ 'content-type': mediaTypes.index, 'docker-content-digest': index.digest },
    ...{ etag: `"${index.digest}"`, 'content-length': String(index.size) },
  })
  expect(JSON.parse(body.toString())).toMatchObject({ manifests: [{ digest: amd64.digest }, {}] })
})

it('an image of another host is pulled by its whole name, by its path, and not as one of docker.io', async () => {
  const of = async (path: string) => (await registry.ask(path)).headers['docker-content-digest']
  expect(await of('/v2/quay.io/tools/app/manifests/2')).toBe(amd64.digest)
  expect(await of('/v2/tools/app/manifests/2')).toBe(amd64.digest)
  expect(await of('/v2/tools/app/manifests/2?ns=quay.io')).toBe(amd64.digest)
  const { status, body } = await registry.ask('/v2/tools/app/manifests/2?ns=docker.io')
  expect([status, errorOf(body)?.code]).toEqual([404, 'NAME_UNKNOWN'])
})

it('a digest is served under any name, a blob as bytes and a manifest by its own type', async () => {
  const manifest = await registry.ask(`/v2/any/name/manifests/${amd64.digest}`)
  expect([manifest.status, manifest.headers['content-type']]).toEqual([200, mediaTypes.manifest])
  const blob = await registry.ask(`/v2/any/name/blobs/${layer.digest}`)
  expect([blob.status, blob.body.toString()]).toEqual([200, 'amd64'])
  const wrong = await registry.ask(`/v2/any/name/manifests/${layer.digest}`)
  expect([wrong.status, errorOf(wrong.body)]).toMatchObject([
    404,
    { code: 'MANIFEST_UNKNOWN', message: expect.stringContaining('not a manifest') as string },
  ])
})

it('HEAD says what GET would send', async () => {
  for (const path of [`/v2/busybox/manifests/1.36`, `/v2/busybox/blobs/${layer.digest}`]) {
    const [get, head] = [await registry.ask(path), await registry.ask(path, {}, 'HEAD')]
    const same = { date: expect.any(String) as string, 'x-request-id': expect.any(String) as string }
    expect(head.headers).toEqual({ ...get.headers, ...same })
    expect([head.status, head.body.length]).toEqual([200, 0])
  }
})

it('without the password nothing is told, and the client is asked for it, also at /v2/', async () => {
  for (const authorization of [
    '',
    'Basic',
    'Basic !!!',
    `Basic ${Buffer.from('edgehostd:wrong').toString('base64')}`,
    'Bearer x',
  ])
    for (const path of [
      '/v2/',
      '/v2/busybox/manifests/1.36',
      `/v2/x/blobs/${layer.digest}`,
      '/v2/_catalog',
    ]) {
      const { status, headers, body } = await registry.ask(path, { authorization })
      expect([status, headers['www-authenticate'], errorOf(body)?.code]).toEqual([
        401,
        'Basic realm="edgehostd"',
        'UNAUTHORIZED',
      ])
    }
  expect((await registry.ask('/v2/')).status).toBe(200)
})

it('a wrong password is in the journal, and the first request of each client is not', async () => {
  const refused = () => registry.lines.filter(({ msg, level }) => msg === 'request' && level === 30)
  await registry.ask('/v2/', { authorization: '' })
  expect(refused()).toEqual([])
  await registry.ask('/v2/', { authorization: 'Basic x' })
  expect(refused()).toMatchObject([{ path: '/v2/', status: 401 }])
})

it('the password is a file of root that an administrator may replace; a bad one keeps the old one', async () => {
  const file = join(registry.folder, 'registry-password')
  const { password } = registry.registry.state()
  expect(password).toMatch(/^[\w-]{43}$/)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  await writeFile(file, 'of-the-admin\n')
  await registry.registry.reload()
  expect(registry.registry.state().password).toBe('of-the-admin')
  expect((await registry.ask('/v2/')).status).toBe(200)
  await writeFile(file, 'two\nlines')
  await registry.registry.reload()
  const state = registry.registry.state()
  expect(state.password).toBe('of-the-admin')
  expect(state.problem).toContain('registry-password is not one line')
  await unlink(file)
  await registry.registry.reload()
  expect(registry.registry.state().password).toMatch(/^[\w-]{43}$/)
  expect(registry.registry.state().problem).toBeUndefined()
  expect((await registry.ask('/v2/', { authorization: basic('of-the-admin') })).status).toBe(401)
})

it('without a usable password the port is open and nothing is told', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-registry-'))
  await mkdir(join(folder, 'registry-password'))
  const closed = await startContentRegistry({ folder })
  try {
    expect(closed.registry.state()).toMatchObject({
      ...{ isListening: true, password: '' },
      problem: `the password of the registry cannot be read or made: ${folder}/registry-password is a folder, not a regular file; mend that, then: systemctl reload edgehostd`,
    })
    for (const authorization of [basic(''), basic('undefined'), ''])
      expect((await closed.ask('/v2/', { authorization })).status).toBe(401)
  } finally {
    await closed.stop()
    await rm(folder, { recursive: true })
  }
})

it('with anonymous pulls no password is needed on loopback, and elsewhere it is a problem of the configuration', async () => {
  const open = await startContentRegistry({ settings: { anonymous: true } })
  try {
    expect((await open.ask('/v2/', { authorization: '' })).status).toBe(200)
    expect(open.registry.state().isAnonymous).toBe(true)
  } finally {
    await open.stop()
  }
  await expect(startContentRegistry({ settings: { anonymous: true, address: '0.0.0.0' } })).rejects.toThrow(
    'content.registry.anonymous is true, but content.registry.address is 0.0.0.0',
  )
})

it('what is not here, and what is no name or digest, is refused with the code of the specification', async () => {
  const absent = 'sha256:' + '0'.repeat(64)
  for (const [path, status, code] of [
    ['/v2/nothing/manifests/1', 404, 'NAME_UNKNOWN'],
    ['/v2/busybox/manifests/2', 404, 'MANIFEST_UNKNOWN'],
    [`/v2/busybox/manifests/${absent}`, 404, 'MANIFEST_UNKNOWN'],
    [`/v2/busybox/blobs/${absent}`, 404, 'BLOB_UNKNOWN'],
    [`/v2/busybox/blobs/sha512:${'0'.repeat(128)}`, 404, 'BLOB_UNKNOWN'],
    ['/v2/busybox/blobs/sha256:1', 400, 'DIGEST_INVALID'],
    ['/v2/busybox/blobs/latest', 400, 'DIGEST_INVALID'],
    ['/v2/Bad/manifests/1', 400, 'NAME_INVALID'],
    ['/v2/a/../b/manifests/1', 400, 'NAME_INVALID'],
    ['/v2/%2e%2e/manifests/1', 400, 'NAME_INVALID'],
    [`/v2/${'a/'.repeat(300)}b/manifests/1`, 400, 'NAME_INVALID'],
    ['/v2/busybox/other', 404, 'NOT_FOUND'],
  ] as const) {
    const reply = await registry.ask(path)
    expect([path, reply.status, errorOf(reply.body)?.code]).toEqual([path, status, code])
  }
})

it('a push is refused with what to do instead', async () => {
  for (const [method, path, allow] of [
    ['POST', '/v2/x/y/blobs/uploads/', ''],
    ['PUT', '/v2/x/y/manifests/1', 'GET, HEAD'],
    ['DELETE', '/v2/x/y/manifests/1', 'GET, HEAD'],
    ['POST', '/v2/x/y/tags/list', 'GET, HEAD'],
  ] as const) {
    const { status, headers, body } = await registry.ask(path, {}, method)
    expect([method, status, errorOf(body)?.code, headers.allow]).toEqual([method, 405, 'UNSUPPORTED', allow])
  }
})

it('a part of a blob is sent, and what is no part is refused with the size', async () => {
  const path = `/v2/busybox/blobs/${layer.digest}`
  const part = async (range: string, more = {}, method = 'GET') => {
    const { status, headers, body } = await registry.ask(path, { range, ...more }, method)
    return [status, headers['content-range'], body.toString()]
  }
  expect(await part('bytes=1-2')).toEqual([206, 'bytes 1-2/5', 'md'])
  expect(await part('bytes=3-')).toEqual([206, 'bytes 3-4/5', '64'])
  expect(await part('bytes=-2')).toEqual([206, 'bytes 3-4/5', '64'])
  expect(await part('bytes=0-0,2-2')).toEqual([200, undefined, 'amd64'])
  expect(await part('bytes=9-3')).toEqual([200, undefined, 'amd64'])
  expect(await part('bytes=1-2', {}, 'HEAD')).toEqual([200, undefined, ''])
  expect(await part('bytes=1-2', { 'if-range': `"${layer.digest}"` })).toEqual([206, 'bytes 1-2/5', 'md'])
  expect(await part('bytes=1-2', { 'if-range': '"other"' })).toEqual([200, undefined, 'amd64'])
  const [status, range, body] = await part('bytes=5-')
  expect([status, range]).toEqual([416, 'bytes */5'])
  expect(errorOf(Buffer.from(String(body)))?.code).toBe('RANGE_UNSATISFIABLE')
})

it('what the client has already is not sent again', async () => {
  for (const path of [`/v2/busybox/blobs/${layer.digest}`, `/v2/busybox/manifests/${layer.digest}`])
    for (const method of ['GET', 'HEAD']) {
      const asked = path.replace(/manifests.*/, 'manifests/1.36')
      const etag = `"${path === asked ? layer.digest : index.digest}"`
      const { status, headers, body } = await registry.ask(asked, { 'if-none-match': `"x", ${etag}` }, method)
      expect([status, headers.etag, body.length]).toEqual([304, etag, 0])
    }
})

it('requests and sent bytes are counted', async () => {
  await registry.ask(`/v2/busybox/blobs/${layer.digest}`)
  await registry.ask(`/v2/busybox/blobs/${layer.digest}`, { range: 'bytes=1-2' })
  await registry.ask(`/v2/busybox/blobs/${layer.digest}`, {}, 'HEAD')
  const { edgehostd_registry_requests_total: requests, edgehostd_registry_sent_bytes_total: bytes } =
    registry.registry.figures()
  const route = '/v2/:name/blobs/:digest'
  expect(requests).toEqual([
    { labels: { method: 'GET', route, status: '200' }, value: 1 },
    { labels: { method: 'GET', route, status: '206' }, value: 1 },
    { labels: { method: 'HEAD', route, status: '200' }, value: 1 },
  ])
  expect(bytes).toBe(7)
})

it('an empty blob is a blob', async () => {
  const layout = createLayout()
  const empty = layout.put('', 'text/plain')
  layout.list(layout.artifact({ artifactType: 'text/empty', layers: [empty] }))
  await registry.publish(layout)
  const { status, headers, body } = await registry.ask(`/v2/x/blobs/${empty.digest}`)
  expect([status, headers['content-length'], body.length]).toEqual([200, '0', 0])
  expect((await registry.ask(`/v2/x/blobs/${empty.digest}`, { range: 'bytes=0-' })).status).toBe(416)
})

it('of two bundles with one tag the newest has it, and the tag falls back when that goes', async () => {
  const layout = createLayout()
  const other = layout.image({ layers: ['newer'] })
  layout.list(other, named('docker.io/library/busybox:1.36'))
  const uid = await registry.publish(layout, 'newer', 2_000)
  const digest = async () =>
    (await registry.ask('/v2/busybox/manifests/1.36', {}, 'HEAD')).headers['docker-content-digest']
  expect(await digest()).toBe(other.digest)
  await registry.store.remove(uid, () => undefined)
  expect(await digest()).toBe(index.digest)
})

describe('on another address than loopback', () => {
  it('the registry speaks HTTPS with the certificate of the host, also when that changes, and needs the password', async () => {
    let material = await makeMaterial()
    const listeners: (() => void)[] = []
    const certificate = {
      material: () => material,
      onChange: (each: () => void) => void listeners.push(each),
    }
    const reachable = await startContentRegistry({ settings: { address: '0.0.0.0' }, certificate })
    try {
      expect(reachable.registry.state()).toMatchObject({ isTls: true, isAnonymous: false })
      expect((await reachable.ask('/v2/')).status).toBe(200)
      expect((await reachable.ask('/v2/', { authorization: '' })).status).toBe(401)
      const { port } = reachable.registry.state()
      await expect(fetch(`http://127.0.0.1:${port}/v2/`)).rejects.toThrow()
      material = await makeMaterial()
      await expect(reachable.ask('/v2/')).rejects.toThrow()
      for (const each of listeners) each()
      expect((await reachable.ask('/v2/')).status).toBe(200)
    } finally {
      await reachable.stop()
    }
  })
})
