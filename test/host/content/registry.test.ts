import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { startContentRegistry, type TestRegistry } from '../../support/content-registry.ts'
import { createLayout, type TestDescriptor } from '../../support/layouts.ts'

let registry: TestRegistry
let amd64: TestDescriptor
let index: TestDescriptor
let layer: TestDescriptor

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
    { code: 'MANIFEST_UNKNOWN', message: expect.stringContaining('not of a manifest') as string },
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
