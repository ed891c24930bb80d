import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HostImage, ImageSource } from '../../src/images/schemas.ts'
import { writeLayoutFolder } from '../support/layout-files.ts'
import { createLayout, type TestDescriptor } from '../support/layouts.ts'
import { addRunnableImage, busyboxLayer, noiseLayer } from '../support/runnable-images.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { machineArchitecture } from './host/plant-images.ts'
import { output } from './host/process.ts'

// The images of a booted host, whose daemon is in its sandbox: containerd, Docker and Podman of Debian.

const right = 'images canary 0823'
const registry = '127.0.0.1:5081'
const path = '/v1/edge-mgmt/content/images'
const filePath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
const k3sSocket = '/run/k3s/containerd/containerd.sock'
const storage = '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/data/podman"\n'

let host: Edgehostd
let token: string
/** An index of an image for this machine, and a plain image. */
let images: { readonly busybox: TestDescriptor; readonly small: TestDescriptor }

interface List {
  readonly items: HostImage[]
  readonly sources: ImageSource[]
}
const list = async (query = '') => (await host.http('GET', `${path}${query}`, { token })).json as List
const fresh = () => list('?refresh=true')
const imageOf = ({ items }: List, digest: string) => items.find((image) => image.digest === digest)
const placesOf = (image: HostImage | undefined) =>
  image?.locations.map(({ runtime, namespace }) => `${runtime} ${namespace}`.trim())
const sourceOf = ({ sources }: List, endpoint: string) =>
  sources.find((source) => source.endpoint === endpoint)
const kill = (signal: string, unit: string) =>
  host.output(['systemctl', 'kill', '--kill-who=main', `--signal=${signal}`, unit])

function writeImages(folder: string) {
  const layout = createLayout()
  const architecture = machineArchitecture
  const here = addRunnableImage(layout, {
    layers: [{ tar: busyboxLayer(), isCompressed: true }],
    architecture,
  })
  const busybox = layout.index([here])
  const small = addRunnableImage(layout, { layers: [{ tar: noiseLayer('small', 2_000_000) }], architecture })
  layout.list(busybox, { 'io.containerd.image.name': 'busybox:1.35' })
  layout.list(small, { 'io.containerd.image.name': 'quay.example/plant/small:2' })
  writeLayoutFolder(folder, layout)
  return { busybox, small }
}

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  // No runtime can keep images on an overlay, which the root of this host is.
  await host.sh(
    'for each in lib/containerd lib/docker lib/k3s ../data; do mkdir -p /var/$each; mount -t tmpfs tmpfs /var/$each; done',
  )
  await host.write('/etc/containers/storage.conf', storage)
  // A network of Docker needs modules of the kernel.
  await host.write(
    '/etc/systemd/system/docker.service.d/host.conf',
    '[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock --bridge=none --iptables=false --storage-driver=vfs\n',
  )
  await host.write(
    '/etc/k3s.toml',
    `version = 2\nroot = "/var/lib/k3s"\nstate = "/run/k3s/state"\n[grpc]\naddress = "${k3sSocket}"\n`,
  )
  await host.sh(`systemctl daemon-reload; systemctl start containerd docker.socket
    systemd-run --quiet --unit=k3s --property=RuntimeDirectory=k3s /usr/bin/containerd --config /etc/k3s.toml`)
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.configure(
    'content',
    'content:\n  reserve: {percent: 0, leastBytes: 1000000}\n  registry: {anonymous: true}\n',
  )
  token = (await host.openSession('chief', right)).token
  const folder = join(host.folder, 'layout')
  images = writeImages(folder)
  await output('tar', ['-C', folder, '-cf', `${folder}.tar`, 'index.json', 'oci-layout', 'blobs'])
  const reply = await host.http('POST', filePath, { token, form: [`uploadFile=@${folder}.tar`] })
  expect(reply, reply.text).toMatchObject({ status: 201 })
})
afterAll(() => host.unplug())

const ctr = (namespace: string, args: string, socket = '/run/containerd/containerd.sock') =>
  host.sh(`ctr --address ${socket} --namespace ${namespace} images ${args}`)
const pull = (namespace: string, name: string, socket?: string) =>
  ctr(namespace, `pull --plain-http ${registry}/${name} >/dev/null`, socket)

describe('the images of a host', () => {
  it('in the content and in every runtime are one row for each digest, read by a daemon without rights', async () => {
    const { busybox, small } = images
    await pull('k8s.io', 'library/busybox:1.35')
    await ctr('k8s.io', `tag ${registry}/library/busybox:1.35 docker.io/library/busybox:1.35`)
    await pull('default', 'quay.example/plant/small:2')
    await pull('k8s.io', 'quay.example/plant/small:2', k3sSocket)
    await host.sh(`docker pull --quiet ${registry}/quay.example/plant/small:2; podman pull --quiet --tls-verify=false docker://${registry}/library/busybox:1.35
      mkdir /root/own; cp /bin/busybox /root/own/; tar -C /root/own -c . | docker import - plant/own:1`)

    const found = await fresh()
    expect(found.sources.map(({ runtime, endpoint, state }) => `${runtime} ${endpoint} ${state}`)).toEqual([
      'store  read',
      'containerd /run/containerd/containerd.sock read',
      `containerd ${k3sSocket} read`,
      'docker /run/docker.sock read',
      'podman /data/podman read',
    ])
    expect(placesOf(imageOf(found, busybox.digest))).toEqual(['store', 'containerd k8s.io', 'podman'])
    expect(imageOf(found, busybox.digest)).toMatchObject({
      canBePulledHere: true,
      names: expect.arrayContaining([
        { name: 'docker.io/library/busybox', tag: '1.35', hasTag: true },
        { name: `${registry}/library/busybox`, tag: '1.35', hasTag: false },
      ]) as unknown,
    })
    expect(placesOf(imageOf(found, small.digest))).toEqual([
      'store',
      'containerd default',
      'containerd k8s.io',
      'docker',
    ])
    const own = found.items.find(({ title }) => title === 'docker.io/plant/own:1')
    expect(own).toMatchObject({
      digest: '',
      canBePulledHere: false,
      platforms: [{ architecture: machineArchitecture }],
    })
    expect(placesOf(own)).toEqual(['docker'])

    const status = await host.read(`/proc/${await host.mainPid()}/status`)
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(await host.property('ReadOnlyPaths')).toContain('/run')
  })

  it('edgehostctl lists them, and those that the kubelet could not pull again', async () => {
    const shown = await host.output(['edgehostctl', 'content', 'images'])
    expect(shown).toMatch(/docker\.io\/library\/busybox:1\.35.*store, containerd k8s\.io, podman\s+yes/)
    const only = await host.output(['edgehostctl', 'content', 'images', '--filter', 'canBePulledHere=false'])
    expect(only).toMatch(/docker\.io\/plant\/own:1/)
    expect(only).not.toMatch(/busybox/)
  })

  it('an image that a runtime has deleted stays in the list, and is pulled from this host again', async () => {
    const { busybox } = images
    // The plugin for the kubelet has named it by its id too, which is no image of its own in the list.
    const named = (await ctr('k8s.io', 'ls --quiet')).trim().split('\n')
    expect(named).toContainEqual(expect.stringMatching(/^sha256:/))
    await ctr('k8s.io', `rm ${named.join(' ')} >/dev/null`)
    expect(placesOf(imageOf(await fresh(), busybox.digest))).toEqual(['store', 'podman'])
    await pull('k8s.io', 'library/busybox:1.35')
    expect(placesOf(imageOf(await fresh(), busybox.digest))).toEqual(['store', 'containerd k8s.io', 'podman'])
  })
})

describe('a runtime that cannot be read', () => {
  it('containerd that hangs is given up after 5 s and named, while its images stay and requests are answered', async () => {
    const before = await list()
    await kill('SIGSTOP', 'containerd')
    const begin = performance.now()
    const asked = fresh()
    expect(await host.statusOf(token)).toBe(200)
    const hung = await asked
    const seconds = (performance.now() - begin) / 1_000
    expect(seconds).toBeGreaterThan(4.5)
    expect(seconds).toBeLessThan(9)
    const { readAt } = sourceOf(before, '/run/containerd/containerd.sock') ?? {}
    expect(sourceOf(hung, '/run/containerd/containerd.sock')).toMatchObject({
      ...{
        state: 'failed',
        readAt,
        message: 'it does not answer within 5 s; try: systemctl status containerd',
      },
    })
    expect(hung.items.map(({ id }) => id)).toEqual(before.items.map(({ id }) => id))
    const ended = await host.run(['edgehostctl', 'content', 'images'])
    expect(ended).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('it does not answer') as unknown,
    })
    await kill('SIGCONT', 'containerd')
    await eventually(async () =>
      expect(sourceOf(await fresh(), '/run/containerd/containerd.sock')).toMatchObject({ state: 'read' }),
    )
    const lines = (await host.log()).filter(({ msg }) => msg.includes('images of containerd'))
    expect(lines.map(({ priority }) => priority)).toEqual([4, 6])
  })

  it('Docker that is stopped is not started by the daemon, and its images stay', async () => {
    await host.output(['systemctl', 'stop', 'docker.service'])
    const found = await fresh()
    expect(sourceOf(found, '/run/docker.sock')).toMatchObject({ state: 'stopped', images: 2 })
    expect((await host.run(['systemctl', 'is-active', 'docker.service', 'docker.socket'])).stdout).toBe(
      'inactive\nactive\n',
    )
  })

  it('the storage of Podman is read without its service', async () => {
    expect((await host.run(['systemctl', 'is-active', 'podman.service'])).stdout).toBe('inactive\n')
    await host.sh('podman rmi --all --force >/dev/null')
    expect(sourceOf(await fresh(), '/data/podman')).toMatchObject({ state: 'read', images: 0 })
  })

  it('a runtime that is removed is no error', async () => {
    await host.sh(`systemctl stop k3s; rm -f ${k3sSocket}`)
    expect(sourceOf(await fresh(), k3sSocket)).toBeUndefined()
  })
})
