import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync, mkdirSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createReadings, type Reading } from '../../../src/images/readings.ts'
import { createContainerd } from '../../../src/images/runtimes/containerd.ts'
import { createDocker } from '../../../src/images/runtimes/docker.ts'
import { createPodman } from '../../../src/images/runtimes/podman.ts'
import type { Runtime, SeenImage } from '../../../src/images/runtimes/describe.ts'
import type { CommandRunner } from '../../../src/system/runner.ts'
import { captureLog } from '../../support/https-server.ts'
import {
  containerdLists,
  dockerImages,
  imagesMessage,
  multi,
  namespacesMessage,
  playContainerd,
  playDocker,
  playSocket,
  podmanRoot,
  type Played,
} from '../../support/image-runtimes.ts'
import { createLayout } from '../../support/layouts.ts'

let folder: string
let socket: string
let played: Played | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-runtimes-'))
  socket = join(folder, 'socket')
})
afterEach(async () => {
  await played?.stop()
  played = undefined
  rmSync(folder, { recursive: true })
})

/** systemctl, which says of the socket and of the service of Docker whether they are active. */
const systemctl = (states: string): CommandRunner => ({
  run: async () => ({ exitCode: 0, stdout: states, stderr: '' }),
})
const containerd = () => createContainerd({ socket, unit: 'containerd' })
const docker = (states = 'active\nactive\n') => createDocker({ socket, runner: systemctl(states) })
const soon = () => AbortSignal.timeout(20_000)
const amd64 = [{ os: 'linux', architecture: 'amd64' }]

async function seen(runtime: Runtime): Promise<readonly SeenImage[]> {
  const found = await runtime.read(soon())
  if (typeof found === 'string') throw new Error(`${runtime.name} is ${found}`)
  return found
}

function readingsOf(runtime: Runtime, limitMs = 5_000) {
  const { log, lines } = captureLog()
  const stopping = new AbortController().signal
  const readings = createReadings({
    runtimes: [runtime],
    stopping,
    limitMs,
    clock: { now: () => 1_000 },
    log,
  })
  return {
    lines,
    async refresh(): Promise<Reading> {
      await readings.refresh()
      const [reading] = readings.current()
      if (!reading) throw new Error('no reading')
      return reading
    },
  }
}

describe('containerd', () => {
  it('images of all namespaces are read, as 1.6 sends them, each once with all its names', async () => {
    const { namespaces, images } = containerdLists()
    played = await playContainerd(socket, {
      namespaces: Buffer.from(namespaces, 'base64'),
      images: (namespace) => Buffer.from(images[namespace] ?? '', 'base64'),
      blob: () => undefined,
    })
    const app = 'sha256:663115bdca987e226d84bb4d932faf0a852757d2818858e342f8099d4efd3e35'
    expect(await seen(containerd())).toEqual([
      { namespace: 'default', digests: [app], names: ['registry.example/plant/app:1'], description: {} },
      { namespace: 'k8s.io', digests: [app], names: ['registry.example/plant/app:1'], description: {} },
      {
        namespace: 'k8s.io',
        digests: [multi.index],
        names: [
          'registry.example/plant/multi:2',
          `registry.example/plant/multi@${multi.index}`,
          multi.imageId,
        ],
        description: {},
      },
    ])
  })

  it('size and platforms are those of what is here, read once while the image does not change', async () => {
    const layout = createLayout()
    const here = layout.image({ layers: ['one', 'two'], more: { platform: amd64[0] } })
    const absent = layout.image({
      architecture: 'arm64',
      more: { platform: { os: 'linux', architecture: 'arm64' } },
    })
    const statement = layout.image({ more: { platform: { os: 'unknown', architecture: 'unknown' } } })
    const index = layout.index([here, absent, statement])
    const plain = layout.image({ architecture: 'riscv64', layers: ['one'] })
    layout.remove(absent.digest)
    const server = await playContainerd(socket, {
      namespaces: namespacesMessage(['k8s.io']),
      images: () =>
        imagesMessage([
          { name: 'a:1', digest: index.digest },
          { name: 'b:1', digest: plain.digest },
        ]),
      blob: (digest) => layout.blobs.get(digest.slice(7)),
    })
    played = server
    const runtime = containerd()
    const [multi, single] = await seen(runtime)
    const manifest = JSON.parse(String(layout.blobs.get(here.digest.slice(7)))) as {
      config: { digest: string; size: number }
    }
    expect(multi?.description).toEqual({
      platforms: amd64,
      sizeBytes: index.size + here.size + manifest.config.size + 'onetwo'.length,
      imageId: manifest.config.digest,
    })
    expect(single?.description.platforms).toEqual([{ os: 'linux', architecture: 'riscv64' }])
    const count = server.reads.length
    expect(await seen(runtime)).toHaveLength(2)
    expect(server.reads).toHaveLength(count)
  })

  it('a list of millions of empty images is refused before it fills the memory', async () => {
    const message = Buffer.alloc(4_000_000).fill(Buffer.from([0x0a, 0x00]))
    played = await playContainerd(socket, {
      namespaces: namespacesMessage(['k8s.io']),
      images: () => message,
      blob: () => undefined,
    })
    await expect(containerd().read(soon())).rejects.toThrow(
      'the answer has more than 100000 names and digests',
    )
  })

  it(
    '10,000 images are read in slices, between which the event loop turns',
    { timeout: 300_000 },
    async () => {
      const layout = createLayout()
      const images = Array.from({ length: 10_000 }, (_, each) => ({
        name: `registry.example/plant/app-${each}:1`,
        digest: layout.image({ layers: [`layer ${each}`] }).digest,
      }))
      const message = imagesMessage(images)
      played = await playContainerd(socket, {
        namespaces: namespacesMessage(['k8s.io']),
        images: () => message,
        blob: () => undefined,
      })
      const runtime = containerd()
      await seen(runtime)
      // A millisecond for each time that it is asked for: eight images are a slice, whatever the machine does meanwhile.
      let now = performance.now()
      vi.spyOn(performance, 'now').mockImplementation(() => (now += 1))
      let turns = 0
      let next: NodeJS.Immediate
      const count = () => {
        turns += 1
        next = setImmediate(count)
      }
      count()
      const found = await seen(runtime)
      clearImmediate(next!)
      expect(found).toHaveLength(10_000)
      expect(turns).toBeGreaterThan(1_000)
    },
  )
})

describe('Docker', () => {
  it('images are read as 20.10 lists them, with the platform of each, which is asked for once', async () => {
    const server = await playDocker(socket, dockerImages)
    played = server
    const runtime = docker()
    const images = await seen(runtime)
    expect(images).toHaveLength(5)
    expect(images.at(-1)).toEqual({
      digests: [multi.index],
      names: ['127.0.0.1:5998/plant/multi:2', `127.0.0.1:5998/plant/multi@${multi.index}`],
      description: { imageId: multi.imageId, sizeBytes: 1_982_256, platforms: amd64 },
    })
    expect(images.find(({ names }) => names[0] === 'plant/app:1')).toMatchObject({ digests: [] })
    expect(await seen(runtime)).toEqual(images)
    expect(server.asked.filter((path) => path !== '/images/json')).toHaveLength(5)
  })

  it('an image without a name has none, and one in a store of containerd has its id as its digest', async () => {
    const [first] = dockerImages()
    const id = `sha256:${'a'.repeat(64)}`
    played = await playDocker(socket, () => [
      { ...first, RepoTags: ['<none>:<none>'], RepoDigests: [`plant/app@${id}`], Id: id },
    ])
    const [image] = await seen(docker())
    expect(image).toMatchObject({ digests: [id], names: [`plant/app@${id}`] })
    expect(image?.description).not.toHaveProperty('imageId')
  })

  it('images whose description cannot be read, or is not answered, do not keep those of others from being read', async () => {
    const images = Array.from({ length: 30 }, (_, each) => ({ Id: `${each}`, RepoTags: [`app-${each}:1`] }))
    const server = createHttpServer((request, reply) => {
      const id = Number(request.url?.split('/')[2])
      if (request.url === '/images/json') reply.end(JSON.stringify(images))
      else if (id < 10) reply.writeHead(500).end()
      else if (id !== 20) reply.end('{"Os":"linux","Architecture":"amd64"}')
    }).listen(socket)
    await once(server, 'listening')
    played = {
      stop: async () => {
        server.closeAllConnections()
        server.close()
      },
    }
    const found = await seen(docker())
    expect(found).toHaveLength(30)
    expect(found.flatMap(({ description }, each) => (description.platforms ? [] : [each]))).toEqual([
      ...Array.from({ length: 10 }, (_, each) => each),
      20,
    ])
  })

  it('a list of millions of small images is refused before it fills the memory', async () => {
    played = await playDocker(socket, () => Array.from({ length: 200_000 }, () => ({ Id: 'a' })))
    await expect(docker().read(soon())).rejects.toThrow('the answer has more than 100000 names and digests')
  })

  it('is not started: while systemd listens on its socket and its service is stopped, it is not asked', async () => {
    let connections = 0
    played = await playSocket(socket, () => (connections += 1))
    expect(await docker('active\ninactive\n').read(soon())).toBe('stopped')
    expect(connections).toBe(0)
  })
})

describe('Podman', () => {
  it('images are read from the storage of 4.3, with the digest of the index by which they were pulled', async () => {
    const images = await seen(createPodman({ root: podmanRoot }))
    expect(images).toHaveLength(2)
    expect(images[1]).toEqual({
      digests: [multi.index, 'sha256:f276b812656d364f333cae575683965a0db711154b0d95407441c692ac40d5ce'],
      names: ['127.0.0.1:5998/plant/multi:2', 'registry.example/plant/multi:2'],
      description: { imageId: multi.imageId, sizeBytes: 1_028_267, platforms: amd64 },
    })
  })

  it('the storage is where storage.conf says', async () => {
    mkdirSync(join(folder, 'etc/containers'), { recursive: true })
    writeFileSync(
      join(folder, 'etc/containers/storage.conf'),
      '[storage]\n# graphroot = "/other"\ndriver = "vfs"\ngraphroot = "/data/images"\n',
    )
    expect(await createPodman({ root: folder }).read(soon())).toBe('absent')
    cpSync(join(podmanRoot, 'var/lib/containers/storage'), join(folder, 'data/images'), { recursive: true })
    expect(await seen(createPodman({ root: folder }))).toHaveLength(2)
  })
})

describe('a runtime that cannot be read', () => {
  it.each([
    ['containerd', containerd],
    ['docker', docker],
  ])(
    '%s that does not answer is given up and named, and its images of the last reading stay',
    async (name, make) => {
      const start = () =>
        name === 'docker'
          ? playDocker(socket, dockerImages)
          : playContainerd(socket, {
              namespaces: Buffer.from(containerdLists().namespaces, 'base64'),
              images: () => Buffer.from(containerdLists().images['k8s.io'] ?? '', 'base64'),
              blob: () => undefined,
            })
      played = await start()
      const { refresh, lines } = readingsOf(make(), 1_000)
      const good = await refresh()
      expect(good).toMatchObject({ state: 'read', readAt: 1_000 })
      await played.stop()

      let connections = 0
      played = await playSocket(socket, () => (connections += 1))
      const failed = await refresh()
      expect(failed).toMatchObject({ state: 'failed', images: good.images, readAt: 1_000 })
      expect(failed.message).toBe(`it does not answer within 1 s; try: systemctl status ${name}`)
      expect(connections).toBe(1)
      await refresh()
      expect(lines.filter(({ msg }) => String(msg).includes('cannot be read'))).toHaveLength(1)
      await played.stop()

      played = await start()
      expect(await refresh()).toMatchObject({ state: 'read', images: good.images })
    },
  )

  it.each([
    ['containerd', containerd, 'garbage', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'.repeat(500))],
    [
      'containerd',
      containerd,
      'HTTP/1',
      Buffer.from('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'),
    ],
    ['docker', docker, 'garbage', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'.repeat(500))],
    ['docker', docker, 'an error', Buffer.from('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n')],
    ['docker', docker, 'no list', Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"images":1}')],
    [
      'docker',
      docker,
      'half a list',
      Buffer.from('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[{"Id":"x"},'),
    ],
  ])('%s that answers with %3$s is named', async (_name, make, _what, bytes) => {
    played = await playSocket(socket, (connection) => connection.once('data', () => connection.end(bytes)))
    const reading = await readingsOf(make()).refresh()
    expect(reading).toMatchObject({ state: 'failed', images: [], readAt: undefined })
    expect(reading.message).toMatch(/^its answer is not understood: /)
  })

  it('Docker that never stops to answer is given up at 64 MiB', { timeout: 300_000 }, async () => {
    const element = `{"Id":"sha256:${'a'.repeat(64)}","Labels":{"a":"${'x'.repeat(60_000)}"}},`
    played = await playSocket(socket, (connection) => {
      const write = () => {
        while (!connection.destroyed && connection.write(element));
      }
      connection.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[')
      connection.on('drain', write)
      write()
    })
    const reading = await readingsOf(docker(), 50_000).refresh()
    expect(reading).toMatchObject({ state: 'failed', message: 'the answer has more than 67108864 bytes' })
  })

  it('one that the host does not have is absent, without an error and a line in the journal', async () => {
    for (const runtime of [containerd(), docker(), createPodman({ root: folder })]) {
      const { refresh, lines } = readingsOf(runtime)
      expect(await refresh()).toMatchObject({ state: 'absent', images: [] })
      expect(lines).toEqual([])
    }
  })

  it('one whose socket is left behind does not run', async () => {
    const server = await playSocket(join(folder, 'other'), () => undefined)
    const { renameSync } = await import('node:fs')
    renameSync(join(folder, 'other'), socket)
    await server.stop()
    const reading = await readingsOf(containerd()).refresh()
    expect(reading).toMatchObject({
      state: 'failed',
      message: 'it does not run; try: systemctl status containerd',
    })
  })
})
