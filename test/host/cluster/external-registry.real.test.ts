import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  containerdConfig,
  parseContainerdVersion,
  registryFilesOf,
} from '../../../src/cluster/engine/containerd.ts'
import { clusterPaths, containerdSocket, containerdState } from '../../../src/cluster/engine/paths.ts'
import type { ExternalRegistry } from '../../../src/content/registry/external-registry.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { pullByCri } from '../../e2e/host/cri.ts'
import { selfSignedCertificate } from '../../support/authority-certificates.ts'
import { waitFor } from '../../support/wait-for.ts'

// A real containerd, by the files that the engine writes, against a registry that gives tokens for a login.

const canRun = process.getuid?.() === 0 && existsSync('/usr/bin/containerd')
const digestOf = (bytes: Buffer | string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
// A tar without members: two blocks of zeros.
const layer = Buffer.alloc(1_024)
const config = JSON.stringify({
  ...{ architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch, os: 'linux', config: {} },
  rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
})
const manifest = JSON.stringify({
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  config: {
    ...{
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: digestOf(config),
      size: config.length,
    },
  },
  layers: [
    {
      ...{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digestOf(layer), size: layer.length },
    },
  ],
})
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const password = 'p"a\\s canary'

describe.skipIf(!canRun)('containerd with the registry of user data (needs root and containerd)', () => {
  let folder: string
  let own: number
  let external: number
  let certificate: { readonly key: string; readonly cert: string }
  const servers: Server[] = []
  const asked = { own: [] as string[], logins: [] as string[] }

  function serve(request: IncomingMessage, reply: ServerResponse): void {
    const { url = '', headers } = request
    if (url.startsWith('/token')) {
      asked.logins.push(headers.authorization ?? 'none')
      const isRight = headers.authorization === basic(`edge:${password}`)
      reply.writeHead(isRight ? 200 : 401).end(isRight ? JSON.stringify({ token: 'a-token' }) : '')
      return
    }
    if (headers.authorization !== 'Bearer a-token') {
      const realm = `Bearer realm="https://localhost:${external}/token",service="plant",scope="repository:plant/app:pull"`
      reply.writeHead(401, { 'www-authenticate': realm }).end()
      return
    }
    const found = {
      '/v2/plant/app/manifests/1': manifest,
      [`/v2/plant/app/manifests/${digestOf(manifest)}`]: manifest,
      [`/v2/plant/app/blobs/${digestOf(config)}`]: config,
      [`/v2/plant/app/blobs/${digestOf(layer)}`]: layer,
    }[url.split('?')[0]!]
    if (found === undefined) return void reply.writeHead(404).end()
    reply.writeHead(200, {
      'content-type':
        found === manifest ? 'application/vnd.oci.image.manifest.v1+json' : 'application/octet-stream',
      'docker-content-digest': digestOf(found),
      'content-length': found.length,
    })
    reply.end(request.method === 'HEAD' ? '' : found)
  }
  async function listen(server: Server): Promise<number> {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-containerd-'))
    // The registry of this host has nothing of it.
    own = await listen(
      createHttp(({ url = '', headers }, reply) => {
        asked.own.push(`${url} ${headers.authorization ?? 'none'}`)
        reply.writeHead(404).end()
      }),
    )
    certificate = selfSignedCertificate('localhost', true)
    external = await listen(createHttps({ ...certificate }, serve))
  })
  afterAll(async () => {
    servers.forEach((server) => server.close())
    await rm(folder, { recursive: true, force: true })
  })

  async function pull(name: string, more: Partial<ExternalRegistry>) {
    const at = join(folder, name)
    const paths = clusterPaths(at)
    const registry = {
      ...{ isEnabled: true, address: '127.0.0.1', port: own, isTls: false, isAnonymous: false },
      ...{ isListening: true, username: 'edgehostd', password: 'own canary' },
    }
    const { files } = registryFilesOf(paths, registry, '', {
      ...{ domain: `localhost:${external}`, username: 'edge', password },
      ...{ certificates: [certificate.cert], isInsecure: false, ...more },
    })
    for (const [path, text] of files) {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
    const { run } = createRunner()
    const version =
      parseContainerdVersion((await run('containerd', ['--version'], { timeoutMs: 10_000 })).stdout) ?? ''
    const login = JSON.parse(files.get(paths.registryLogin) ?? 'null') as Parameters<
      typeof containerdConfig
    >[0]['login']
    const text = containerdConfig({ paths, version, pauseImage: 'pause', mayLowerOomScore: false, login })
    const socket = join(at, 'containerd.sock')
    const moved = text.replaceAll(containerdSocket, socket).replaceAll(containerdState, join(at, 'run'))
    await writeFile(paths.containerdConfig, moved)
    const lines: string[] = []
    const containerd = spawn('containerd', ['--config', paths.containerdConfig])
    containerd.stderr.on('data', (data: Buffer) => lines.push(data.toString()))
    const ended = once(containerd, 'exit')
    try {
      return await waitFor(
        async () => {
          expect(existsSync(socket)).toBe(true)
          const reply = await pullByCri(socket, `localhost:${external}/plant/app:1`)
          expect(reply.message).not.toMatch(/server is not initialized|unknown service/)
          return reply
        },
        { timeout: 60_000, interval: 200 },
      ).catch((error: unknown) => {
        throw new Error(lines.join('').slice(-4_000), { cause: error })
      })
    } finally {
      containerd.kill()
      await ended
    }
  }

  it('pulls what the content has not, with the login that its token needs, by its authority alone', async () => {
    expect(await pull('good', {})).toEqual({ status: 0, message: '' })
    // Containerd asks without a login first.
    expect(asked.logins).toContain(basic(`edge:${password}`))
    // That of this host came first, and has not got the login of the other.
    expect(asked.own.some((each) => each.startsWith('/v2/plant/app/manifests/1'))).toBe(true)
    expect(asked.own.filter((each) => !each.endsWith(` ${basic('edgehostd:own canary')}`))).toEqual([])
  })

  it('with another password, and without its authority, does not pull', async () => {
    expect((await pull('bad', { password: 'wrong' })).status).not.toBe(0)
    const distrusted = await pull('distrusted', { certificates: [] })
    expect(distrusted.message).toMatch(/x509|certificate/)
    expect((await pull('insecure', { certificates: [], isInsecure: true })).status).toBe(0)
  })
})
