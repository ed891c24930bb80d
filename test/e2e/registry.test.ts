import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mediaTypes } from '../../src/content/format/media-types.ts'
import { writeLayoutFolder } from '../support/layout-files.ts'
import { createLayout, type TestDescriptor } from '../support/layouts.ts'
import { addRunnableImage, noiseLayer } from '../support/runnable-images.ts'
import { askInside, type InsideReply } from './host/ask-inside.ts'
import { startCuttingProxy } from './host/cutting-proxy.ts'
import type { Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { beginManyPulls } from './host/many-pulls.ts'
import type { PlantImages } from './host/plant-images.ts'
import { bootRegistryHost, registryAddress as registry, type RegistryHost } from './host/registry-host.ts'

// The protocol of the registry of a booted host: by curl, by skopeo, and beside another registry.

const MB = 1_000_000

let served: RegistryHost
let host: Edgehostd
let images: PlantImages
let password: string
let ask: RegistryHost['ask']
beforeAll(async () => {
  served = await bootRegistryHost()
  ;({ host, images, password, ask } = served)
})
afterAll(() => host.unplug())

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')

describe('each path of an image', () => {
  it.each([
    ['as containerd asks', '/v2/library/busybox/manifests/REFERENCE?ns=docker.io'],
    ['as podman and skopeo ask', '/v2/docker.io/library/busybox/manifests/REFERENCE'],
    ['without a host', '/v2/library/busybox/manifests/REFERENCE'],
  ])('%s gives the same manifest, by tag and by digest', async (_, path) => {
    for (const reference of ['1.35', images.busybox.digest]) {
      const { status, headers, body } = await ask(path.replace('REFERENCE', reference))
      expect([status, headers['content-type']]).toEqual([200, mediaTypes.index])
      expect(headers['docker-content-digest']).toBe(images.busybox.digest)
      expect(`sha256:${sha256(body)}`).toBe(images.busybox.digest)
    }
  })

  it('a digest is served under any name, and an image of another host without its host', async () => {
    for (const path of [
      `/v2/library/busybox/blobs/${images.smallLayer.digest}`,
      `/v2/some/name/blobs/${images.smallLayer.digest}`,
    ]) {
      const { status, body } = await ask(path)
      expect([status, `sha256:${sha256(body)}`]).toEqual([200, images.smallLayer.digest])
    }
    expect(await ask('/v2/plant/small/manifests/2')).toMatchObject({
      headers: { 'docker-content-digest': images.small.digest },
    })
    expect(await ask('/v2/plant/small/manifests/2?ns=docker.io')).toMatchObject({ status: 404 })
  })
})

describe('the password', () => {
  it('nothing is served without it, with a wrong one, or with the one of an account', async () => {
    for (const user of ['edgehostd:wrong', 'chief:registry canary 0811', `root:${password}`]) {
      expect(await ask('/v2/', '--user', user)).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': expect.stringMatching(/^Basic realm=/) as string },
      })
    }
    for (const path of ['/v2/', '/v2/library/busybox/manifests/1.35'])
      expect(await askInside(host, `http://${registry}${path}`)).toMatchObject({ status: 401 })
    const refused = await host.run([
      ...['skopeo', 'inspect', '--no-tags', '--tls-verify=false', '--creds', 'edgehostd:wrong'],
      `docker://${registry}/library/busybox:1.35`,
    ])
    expect(refused.exitCode).not.toBe(0)
    expect(refused.stderr).toMatch(/unauthorized|authentication/i)
  })
})

describe('beside another registry', () => {
  const other = '127.0.0.1:5082'
  beforeAll(async () => {
    const folder = join(host.folder, 'whole')
    const layout = createLayout()
    const descriptors = ['amd64', 'arm64'].map((architecture) =>
      addRunnableImage(layout, { layers: [{ tar: noiseLayer(architecture, 5_000) }], architecture }),
    )
    whole = layout.index(descriptors)
    layout.list(whole, { 'io.containerd.image.name': 'docker.io/plant/whole:1' })
    for (const tag of ['2', '3', '10'])
      layout.list(descriptors[0]!, { 'io.containerd.image.name': `docker.io/plant/whole:${tag}` })
    layer = layout.put(noiseLayer('amd64', 5_000), mediaTypes.layer)
    writeLayoutFolder(folder, layout)
    await served.upload(folder)
    await host.write(
      '/srv/other.yml',
      `version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: /srv/other}}\nhttp: {addr: '${other}'}\n`,
    )
    await host.output(['systemd-run', '--unit=other', 'docker-registry', 'serve', '/srv/other.yml'])
    await eventually(() => askInside(host, `http://${other}/v2/`))
    // By the registry of the host, so that it has what it is compared with from there.
    for (const tag of ['1', '2', '3', '10'])
      await host.output([
        ...['skopeo', 'copy', '--quiet', '--all', '--preserve-digests', '--src-tls-verify=false'],
        ...['--dest-tls-verify=false', '--src-creds', `edgehostd:${password}`],
        ...[`docker://${registry}/plant/whole:${tag}`, `docker://${other}/plant/whole:${tag}`],
      ])
  })
  let whole: TestDescriptor
  let layer: TestDescriptor

  const bound = ['docker-content-digest', 'content-type', 'content-length', 'content-range']
  /** What the specification binds of a reply. */
  const boundOf = ({ status, headers, body }: InsideReply) => ({
    status,
    ...(status < 300 ? { sum: sha256(body) } : { code: codeOf(body) }),
    ...(status < 300 ? Object.fromEntries(bound.map((name) => [name, headers[name]])) : {}),
  })
  const codeOf = (body: Buffer): string =>
    body.length === 0 ? '' : (JSON.parse(body.toString()) as { errors: { code: string }[] }).errors[0]!.code

  const absent = `sha256:${'0'.repeat(64)}`
  const accept = ['-H', `Accept: ${mediaTypes.index}, ${mediaTypes.manifest}`]
  it.each<[string, () => string, ...string[]]>([
    ['an index by tag', () => '/manifests/1', ...accept],
    ['the head of an index by tag', () => '/manifests/1', '--head', ...accept],
    ['an index by digest', () => `/manifests/${whole.digest}`, ...accept],
    ['the head of an index by digest', () => `/manifests/${whole.digest}`, '--head', ...accept],
    ['an unknown tag', () => '/manifests/absent', ...accept],
    ['the head of an unknown tag', () => '/manifests/absent', '--head', ...accept],
    ['an unknown digest', () => `/manifests/${absent}`, ...accept],
    ['a blob', () => `/blobs/${layer.digest}`],
    ['the head of a blob', () => `/blobs/${layer.digest}`, '--head'],
    ['the first bytes of a blob', () => `/blobs/${layer.digest}`, '--range', '0-99'],
    ['the middle of a blob', () => `/blobs/${layer.digest}`, '--range', '100-4999'],
    ['the rest of a blob', () => `/blobs/${layer.digest}`, '--range', '1000-'],
    ['the last bytes of a blob', () => `/blobs/${layer.digest}`, '--range', '-100'],
    ['more than is left of a blob', () => `/blobs/${layer.digest}`, '--range', '1000-99999999'],
    ['an unknown blob', () => `/blobs/${absent}`],
    ['the head of an unknown blob', () => `/blobs/${absent}`, '--head'],
    ['a blob under an invalid digest', () => '/blobs/sha256:12'],
  ])('%s is the same there', async (_, path, ...args) => {
    const target = `/v2/plant/whole${path()}`
    const [own, theirs] = [
      await ask(target, ...args),
      await askInside(host, `http://${other}${target}`, args),
    ]
    expect(boundOf(own)).toEqual(boundOf(theirs))
  })

  it('the tags are the same there', async () => {
    const path = '/v2/plant/whole/tags/list'
    const [own, theirs] = [await ask(path), await askInside(host, `http://${other}${path}`)]
    const tagsOf = ({ body }: InsideReply) => (JSON.parse(body.toString()) as { tags: string[] }).tags
    // The specification asks for this order; the other one has none.
    expect(tagsOf(own)).toEqual([...tagsOf(theirs)].sort())
  })
})

describe('a pull that is disturbed', () => {
  it('the rest of a blob is pulled after a cut', async () => {
    const proxy = await startCuttingProxy(host.leader, { from: 5083, to: 5081, cutAfter: 60 * MB })
    const curl = [
      ...['curl', '--silent', '--user', `edgehostd:${password}`],
      ...['--output', '/srv/part', '--continue-at', '-'],
      `http://127.0.0.1:5083/v2/plant/large/blobs/${images.largeLayer.digest}`,
    ]
    try {
      expect((await host.run(curl)).exitCode).not.toBe(0)
      await host.output(curl)
      expect(proxy.seen()).toEqual(['cut', expect.stringMatching(/^bytes=\d{7,}-$/)])
    } finally {
      await proxy.stop()
    }
    expect(await host.output(['sha256sum', '/srv/part'])).toContain(images.largeLayer.digest.slice(7))
    await host.output(['rm', '/srv/part'])
  })

  it('an image that is deleted during a pull arrives whole, and is unknown afterwards', async () => {
    const url = `/v2/plant/large/blobs/${images.largeLayer.digest}`
    const pulling = host.sh(
      `curl --silent --fail --limit-rate 40M --user edgehostd:${password} http://${registry}${url} | sha256sum`,
    )
    const program = await host.mainPid()
    await eventually(async () =>
      expect(await host.sh(`ls -l /proc/${program}/fd`)).toContain(images.largeLayer.digest.slice(7)),
    )
    const deleted = await host.http('DELETE', `/v1/edge-mgmt/content/bundles/${served.uid}`, {
      token: served.token,
    })
    expect(deleted).toMatchObject({ status: 204 })
    expect(await host.sh(`ls -l /proc/${program}/fd`)).toContain(
      `${images.largeLayer.digest.slice(7)} (deleted)`,
    )
    expect(await pulling).toContain(images.largeLayer.digest.slice(7))
    const after = await ask(url)
    expect([after.status, after.body.toString()]).toEqual([404, expect.stringContaining('BLOB_UNKNOWN')])
    await served.upload(served.layout)
  })
})

it('many pulls at once need little memory, and each gets its bytes', async () => {
  const status = async () => await host.read(`/proc/${await host.mainPid()}/status`)
  const rssMiB = async () => Number(/^VmRSS:\s+(\d+)/m.exec(await status())![1]) / 1_024
  const before = await rssMiB()
  const pulls = await beginManyPulls(host.leader, {
    url: `http://${registry}/v2/plant/small/blobs/${images.smallLayer.digest}`,
    authorization: `Basic ${Buffer.from(`edgehostd:${password}`).toString('base64')}`,
    count: 900,
  })
  const held = (await rssMiB()) - before
  expect(await pulls.finish()).toEqual({ [`200 ${images.smallLayer.digest.slice(7)}`]: 900 })
  const after = (await rssMiB()) - before
  expect(Math.max(held, after)).toBeLessThan(160)
})

describe('on loopback, without a password', () => {
  it('a registry that needs no password serves without one', async () => {
    await served.configure('anonymous: true')
    expect(await askInside(host, `http://${registry}/v2/`)).toMatchObject({ status: 200 })
    const source = ['--src-tls-verify=false', '--src-no-creds', `docker://${registry}/library/busybox:1.35`]
    await host.output(['skopeo', 'copy', '--quiet', ...source, 'dir:/srv/anonymous'])
  })
})
