import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pullByCri } from './host/cri.ts'
import { startCuttingProxy } from './host/cutting-proxy.ts'
import type { Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { absentArchitecture, machineArchitecture, type PlantImages } from './host/plant-images.ts'
import { output, run } from './host/process.ts'
import { bootRegistryHost, registryAddress as registry, type RegistryHost } from './host/registry-host.ts'

// What pulls from the registry of a booted host: containerd, podman and skopeo of Debian, by the files that edgehostctl prints.

const MB = 1_000_000
const busybox = 'docker.io/library/busybox'
const large = 'registry.example:5000/plant/large'
const small = 'quay.example/plant/small'

let served: RegistryHost
let host: Edgehostd
let images: PlantImages
let password: string
beforeAll(async () => {
  served = await bootRegistryHost()
  ;({ host, images, password } = served)
})
afterAll(() => host.unplug())

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
const inHost = (path: string) => `/proc/${host.leader}/root${path}`

/** Writes the files that edgehostctl prints for a runtime. */
const configureRuntime = (runtime: string) =>
  host.sh(`edgehostctl content registry config --for ${runtime} --directory / --replace`)

/** The bytes of a layout that a tool has copied, by name of the blob. */
const copied = async (folder: string) =>
  (await host.sh(`cd ${folder}; sha256sum $(ls | grep -E '^[0-9a-f]{64}$')`))
    .trim()
    .split('\n')
    .map((line) => line.split(/\s+/))

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

  it('the kubelet pulls by the same file, and the step that edgehostctl names', async () => {
    await host.sh(
      `cat >> /etc/containerd/config.toml <<'END'
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
END
      systemctl restart containerd`,
    )
    const pulled = await eventually(async () => {
      const reply = await pullByCri(inHost('/run/containerd/containerd.sock'), `${small}:2`)
      expect(reply.message).not.toMatch(/server is not initialized|unknown service/)
      return reply
    })
    expect(pulled).toEqual({ status: 0, message: '' })
    expect((await ctr('--namespace', 'k8s.io', 'images', 'ls')).stdout).toContain(images.small.digest)
    const absent = await pullByCri(inHost('/run/containerd/containerd.sock'), 'docker.io/library/absent:1')
    expect(absent).toMatchObject({ status: 5, message: expect.stringContaining('not found') as string })
  })
})

describe('podman, with the files of edgehostctl', () => {
  const podman = (...args: readonly string[]) => host.run(['podman', ...args])
  beforeAll(() => configureRuntime('podman'))

  it('edgehostctl knows the registries that the images of the host name', async () => {
    expect((await served.show()).hosts).toEqual(['docker.io', 'quay.example', 'registry.example:5000'])
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

describe('docker, with the files of edgehostctl', () => {
  const docker = (...args: readonly string[]) => host.run(['docker', ...args])
  const pulled = async (name: string) => {
    const { exitCode, stderr } = await docker('pull', '--quiet', name)
    expect(exitCode, stderr).toBe(0)
    return (await docker('image', 'inspect', '--format', '{{json .RepoDigests}}', name)).stdout
  }
  beforeAll(async () => {
    // A network of Docker needs modules of the kernel.
    await host.write(
      '/etc/systemd/system/docker.service.d/host.conf',
      '[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock --bridge=none --iptables=false --storage-driver=vfs\n',
    )
    await host.sh(
      'mkdir -p /var/lib/docker; mount -t tmpfs tmpfs /var/lib/docker; systemctl daemon-reload; systemctl start docker',
    )
  })

  it('docker pulls by the name of the registry when it has the password', async () => {
    const refused = await host.run(['edgehostctl', 'content', 'registry', 'config', '--for', 'docker'])
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('docker login') as string })
    const login = ['docker', 'login', '--username', 'edgehostd', '--password-stdin', registry]
    await host.output(login, { input: password })
    expect(await pulled(`${registry}/${busybox}:1.35`)).toContain(images.busybox.digest)
  })

  it('docker pulls an image of docker.io without a password, where the registry needs none', async () => {
    await served.configure('anonymous: true')
    await host.sh(`docker logout ${registry}`)
    await configureRuntime('docker')
    await host.output(['systemctl', 'reload', 'docker'])
    expect(await pulled('busybox:1.35')).toContain(`busybox@${images.busybox.digest}`)
    expect(await pulled(`${registry}/${small}:2`)).toContain(images.small.digest)
    await host.output(['systemctl', 'stop', 'docker.socket', 'docker'])
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
    await served.configure('address: 10.77.0.1')
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
