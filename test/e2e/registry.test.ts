import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mediaTypes } from '../../src/content/format/media-types.ts'
import { writeLayoutFolder } from '../support/layout-files.ts'
import { createLayout, type TestDescriptor } from '../support/layouts.ts'
import { addRunnableImage, noiseLayer } from '../support/runnable-images.ts'
import { askInside, type InsideReply } from './host/ask-inside.ts'
import { startCuttingProxy } from './host/cutting-proxy.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { beginManyPulls } from './host/many-pulls.ts'
import {
  absentArchitecture,
  machineArchitecture,
  writePlantImages,
  type PlantImages,
} from './host/plant-images.ts'
import { output, run } from './host/process.ts'

// The registry of a booted host, and what pulls from it: containerd, podman and skopeo of Debian.

const right = 'registry canary 0811'
const MB = 1_000_000
const registry = '127.0.0.1:5081'
const filePath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
const busybox = 'docker.io/library/busybox'
const large = 'registry.example:5000/plant/large'
const small = 'quay.example/plant/small'

let host: Edgehostd
let token: string
let password: string
let uid: string
let images: PlantImages

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
const inHost = (path: string) => `/proc/${host.leader}/root${path}`

/** Uploads a layout; returns the uid of its bundle. */
async function upload(folder: string): Promise<string> {
  await output('tar', ['-C', folder, '-cf', `${folder}.tar`, 'index.json', 'oci-layout', 'blobs'])
  const reply = await host.http('POST', filePath, { token, form: [`uploadFile=@${folder}.tar`] })
  expect(reply, reply.text).toMatchObject({ status: 201 })
  return reply.json.uid as string
}

/** Waits until the registry listens. */
const configure = async (yaml = '') => {
  const reserve = 'reserve: {percent: 0, leastBytes: 1000000}'
  await host.configure('content', `content:\n  ${reserve}\n  registry: {${yaml}}\n`)
  await eventually(async () => expect((await show()).isListening).toBe(true))
}
const show = async () =>
  JSON.parse(await host.output(['edgehostctl', 'api', 'get', '/v1/edge-mgmt/content/registry'])) as {
    isListening: boolean
    hosts: string[]
  }
/** Writes the files that edgehostctl prints for a runtime. */
const configureRuntime = (runtime: string) =>
  host.sh(`edgehostctl content registry config --for ${runtime} --directory / --replace`)

/** A request by curl on the host, with the password of the registry unless `args` have another one. */
const ask = (path: string, ...args: readonly string[]) =>
  askInside(host, `http://${registry}${path}`, ['--user', `edgehostd:${password}`, ...args])

/** The bytes of a layout that a tool has copied, by name of the blob. */
const copied = async (folder: string) =>
  (await host.sh(`cd ${folder}; sha256sum $(ls | grep -E '^[0-9a-f]{64}$')`))
    .trim()
    .split('\n')
    .map((line) => line.split(/\s+/))

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  // The runtimes cannot keep images on an overlay, which the root of this host is. The overlays of podman need devices that a
  // container may not make.
  await host.sh(
    'for each in containerd containers; do mkdir -p /var/lib/$each; mount -t tmpfs tmpfs /var/lib/$each; done',
  )
  await host.write(
    '/etc/containers/storage.conf',
    '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n',
  )
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await configure()
  token = (await host.openSession('chief', right)).token
  const folder = join(host.folder, 'layout')
  images = writePlantImages(folder)
  uid = await upload(folder)
  password = (await host.read('/var/lib/edgehostd/registry-password')).trim()
})
afterAll(() => host.unplug())

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
    for (const user of ['edgehostd:wrong', `chief:${right}`, `root:${password}`]) {
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

describe('containerd, with the files of edgehostctl', () => {
  const ctr = (...args: readonly string[]) => host.run(['ctr', ...args])
  const pull = (name: string, folder = '/etc/containerd/certs.d') =>
    ctr('images', 'pull', '--hosts-dir', folder, name)

  beforeAll(async () => {
    await configureRuntime('containerd')
    await host.output(['systemctl', 'start', 'containerd'])
  })

  it.each([
    ['by tag, its platform of a sparse index', () => [`${busybox}:1.35`, images.busybox.digest]],
    ['by the digest of the index', () => [`${busybox}@${images.busybox.digest}`, images.busybox.digest]],
    ['by the digest of a platform', () => [`${busybox}@${images.here.digest}`, images.here.digest]],
    ['of 200 MB, of a registry with a port', () => [`${large}:1`, images.large.digest]],
  ])('containerd pulls and unpacks an image %s', async (_, wanted) => {
    const [name = '', digest = ''] = wanted()
    const { exitCode, stdout, stderr } = await pull(name)
    expect(exitCode, stdout + stderr).toBe(0)
    expect(stdout).toContain(`unpacking linux/${machineArchitecture} ${digest}`)
    expect((await ctr('images', 'ls', `name==${name}`)).stdout).toContain(digest)
  })

  it('for what the host does not have containerd asks no other registry', async () => {
    const { exitCode, stderr } = await pull('docker.io/library/absent:1')
    expect(exitCode).not.toBe(0)
    expect(stderr).toMatch(/not found/)
    expect(stderr).not.toMatch(/registry-1|lookup|dial/)
  })

  it('after a cut containerd asks for the rest of a blob only', async () => {
    const proxy = await startCuttingProxy(host.leader, { from: 5083, to: 5081, cutAfter: 60 * MB })
    await host.sh(
      `ctr images rm --sync ${large}:1; mkdir -p /srv/certs.d/_default
       sed s/:5081/:5083/ /etc/containerd/certs.d/_default/hosts.toml > /srv/certs.d/_default/hosts.toml`,
    )
    try {
      const { exitCode, stderr } = await pull(`${large}:1`, '/srv/certs.d')
      expect(exitCode, stderr).toBe(0)
      // The cut may hit several blobs, one of them at its begin.
      const [cut, ...ranges] = proxy.seen()
      expect(cut).toBe('cut')
      const starts = ranges.map((range) => Number(/^bytes=(\d+)-/.exec(range)?.[1]))
      expect(Math.max(...starts)).toBeGreaterThan(MB)
    } finally {
      await proxy.stop()
    }
  })
})

describe('podman, with the files of edgehostctl', () => {
  const podman = (...args: readonly string[]) => host.run(['podman', ...args])
  beforeAll(() => configureRuntime('podman'))

  it('edgehostctl knows the registries that the images of the host name', async () => {
    expect((await show()).hosts).toEqual(['docker.io', 'quay.example', 'registry.example:5000'])
  })

  it.each([
    ['by tag, its platform of a sparse index', () => [`${busybox}:1.35`, images.busybox.digest]],
    ['by digest', () => [`${busybox}@${images.busybox.digest}`, images.busybox.digest]],
    ['of 200 MB, of a registry with a port', () => [`${large}:1`, images.large.digest]],
    ['of the registry itself', () => [`${registry}/library/busybox:1.35`, images.busybox.digest]],
  ])('podman pulls an image %s', async (_, wanted) => {
    const [name = '', digest = ''] = wanted()
    const { exitCode, stderr } = await podman('pull', '--quiet', name)
    expect(exitCode, stderr).toBe(0)
    const shown = await podman('image', 'inspect', '--format', '{{json .RepoDigests}}', name)
    expect(shown.stdout).toContain(digest)
  })

  it('skopeo copies an image by the same files, and each byte is that of the bundle', async () => {
    await host.output(['skopeo', 'copy', '--quiet', `docker://${large}:1`, 'dir:/srv/copied'])
    expect(`sha256:${sha256(readFileSync(inHost('/srv/copied/manifest.json')))}`).toBe(images.large.digest)
    const blobs = await copied('/srv/copied')
    expect(blobs.length).toBe(4)
    expect(blobs.filter(([sum, name]) => sum !== name)).toEqual([])
    await host.output(['rm', '-r', '/srv/copied'])
    const raw = await host.run(['skopeo', 'inspect', '--raw', `docker://${busybox}@${images.busybox.digest}`])
    expect(`sha256:${sha256(raw.stdout)}`).toBe(images.busybox.digest)
  })

  it('for what the host does not have podman asks no other registry', async () => {
    const { exitCode, stderr } = await podman('pull', 'docker.io/library/absent:1')
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain(registry)
    expect(stderr).not.toMatch(/registry-1|lookup/)
  })

  it('a platform that is not carried is unknown', async () => {
    const { exitCode, stderr } = await host.run([
      ...['skopeo', 'copy', '--override-arch', absentArchitecture],
      ...[`docker://${busybox}:1.35`, 'dir:/srv/absent'],
    ])
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/manifest unknown/)])
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
    await upload(folder)
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
    ['a blob under a digest that is none', () => '/blobs/sha256:12'],
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
    const deleted = await host.http('DELETE', `/v1/edge-mgmt/content/bundles/${uid}`, { token })
    expect(deleted).toMatchObject({ status: 204 })
    expect(await host.sh(`ls -l /proc/${program}/fd`)).toContain(
      `${images.largeLayer.digest.slice(7)} (deleted)`,
    )
    expect(await pulling).toContain(images.largeLayer.digest.slice(7))
    const after = await ask(url)
    expect([after.status, after.body.toString()]).toEqual([404, expect.stringContaining('BLOB_UNKNOWN')])
    uid = await upload(join(host.folder, 'layout'))
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
  it('what needs no password is pulled without one, as dockerd does', async () => {
    await configure('anonymous: true')
    expect(await askInside(host, `http://${registry}/v2/`)).toMatchObject({ status: 200 })
    const source = ['--src-tls-verify=false', '--src-no-creds', `docker://${registry}/library/busybox:1.35`]
    await host.output(['skopeo', 'copy', '--quiet', ...source, 'dir:/srv/anonymous'])
  })
})

describe('on another address', () => {
  const remote = '10.77.0.1:5081'
  const elsewhere = (...args: readonly string[]) =>
    run('nsenter', ['-t', String(host.clientNamespace()), '-n', ...args])
  const skopeo = (...args: readonly string[]) =>
    elsewhere('skopeo', 'inspect', '--no-tags', '--raw', ...args, `docker://${remote}/library/busybox:1.35`)
  let trusted: string[]

  beforeAll(async () => {
    await configure('address: 10.77.0.1')
    await host.trust()
    const folder = join(host.folder, 'trusted')
    await output('mkdir', ['-p', folder])
    writeFileSync(join(folder, 'ca.crt'), readFileSync(host.cacert))
    trusted = ['--cert-dir', folder]
  })

  it('another host pulls by TLS, with the certificate of the host and the password', async () => {
    const { exitCode, stdout, stderr } = await skopeo(...trusted, '--creds', `edgehostd:${password}`)
    expect(exitCode, stderr).toBe(0)
    expect(`sha256:${sha256(stdout)}`).toBe(images.busybox.digest)
  })

  it('another host pulls nothing without trust, without the password, or in plain text', async () => {
    const untrusted = await skopeo('--creds', `edgehostd:${password}`)
    expect(untrusted.stderr).toMatch(/certificate/)
    for (const login of [['--no-creds'], ['--creds', 'edgehostd:wrong']]) {
      const refused = await skopeo(...trusted, ...login)
      expect([refused.exitCode, refused.stderr]).toEqual([
        1,
        expect.stringMatching(/unauthorized|authentication/i),
      ])
    }
    const plain = await elsewhere('curl', '--silent', '--max-time', '10', `http://${remote}/v2/`)
    expect([plain.exitCode === 0, plain.stdout]).toEqual([false, ''])
  })

  it('the runtimes of the host pull by the files that edgehostctl prints then', async () => {
    for (const runtime of ['containerd', 'podman']) await configureRuntime(runtime)
    const podman = await host.run(['podman', 'pull', '--quiet', `${small}:2`])
    expect(podman.exitCode, podman.stderr).toBe(0)
    const pull = ['ctr', 'images', 'pull', '--hosts-dir', '/etc/containerd/certs.d']
    const ctr = await host.run([...pull, `${small}:2`])
    expect(ctr.exitCode, ctr.stderr).toBe(0)
    expect(ctr.stdout).toContain(images.small.digest)
  })
})
