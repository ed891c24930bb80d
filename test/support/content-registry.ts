import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { clientFromAnywhere } from '../../src/base/client.ts'
import type { ContentSettings } from '../../src/content/config.ts'
import { examine } from '../../src/content/program/examine.ts'
import {
  createRegistry,
  type RegistryCertificate,
  type RegistryTiming,
} from '../../src/content/registry/registry.ts'
import { createContentStore } from '../../src/content/store/open-store.ts'
import { createRunner } from '../../src/system/runner.ts'
import { publishInProcess, verifyInProcess } from './content-bundles.ts'
import { captureLog } from './https-server.ts'
import { sha256, type TestLayout } from './layouts.ts'

export interface RegistryReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface TestRegistryOptions {
  readonly settings?: Partial<ContentSettings['registry']>
  readonly certificate?: RegistryCertificate
  /** A folder that outlives the registry. */
  readonly folder?: string
  readonly timing?: Partial<RegistryTiming>
}

/** The registry over a store in a folder of its own, on a free port of loopback. Bundles are examined as `content.cjs` does. */
export async function startContentRegistry({
  settings,
  certificate,
  folder: given,
  timing,
}: TestRegistryOptions = {}) {
  const folder = given ?? (await mkdtemp(join(tmpdir(), 'edgehostd-registry-')))
  const { log, lines, texts } = captureLog()
  const stopping = new AbortController()
  const store = createContentStore({
    ...{ root: join(folder, 'content'), requirePlace: async () => undefined, log },
    ...{ reserve: { percent: 0, leastBytes: 0 }, indexFile: join(folder, 'content.db'), bootId: 'boot 1' },
    ...{ program: publishInProcess, verify: verifyInProcess, runner: createRunner(), definitions: undefined },
    clock: { now: () => 5_000 },
  })
  const registry = createRegistry({
    settings: { enabled: true, address: '127.0.0.1', port: 0, anonymous: false, ...settings },
    ...{ checkRate: 1_000_000_000, stateDirectory: folder, store, clientOf: clientFromAnywhere },
    program: { verify: verifyInProcess },
    certificate: certificate ?? {
      material: () => ({ key: '', cert: '' }),
      onChange: () => undefined,
    },
    ...{ stopping: stopping.signal, log, anonymousLog: log, timing },
  })
  await registry.start()

  const authorization = () =>
    `Basic ${Buffer.from(`edgehostd:${registry.state().password}`).toString('base64')}`
  return {
    ...{ folder, store, registry, lines, texts, authorization },
    fileOf: (digest: string) => join(store.blobs, digest.slice(7)),
    /** @param more headers; `authorization: ''` sends none */
    async ask(
      path: string,
      more: Readonly<Record<string, string>> = {},
      method = 'GET',
    ): Promise<RegistryReply> {
      const { authorization: sent = authorization(), ...headers } = more
      const { isTls, port } = registry.state()
      const request = (isTls ? httpsRequest : httpRequest)({
        ...{ host: '127.0.0.1', port, path, method, agent: false },
        // The certificate that is used now.
        ...(isTls ? { ca: certificate?.material().cert, checkServerIdentity: () => undefined } : {}),
        headers: { ...headers, ...(sent === '' ? {} : { authorization: sent }) },
      }).end()
      const [reply] = (await once(request, 'response')) as [IncomingMessage & { statusCode: number }]
      return { status: reply.statusCode, headers: reply.headers, body: await buffer(reply) }
    },
    /** Publishes a layout. @returns uid of its bundle */
    async publish(layout: TestLayout, name = 'bundle', publishedAt = 1_000): Promise<string> {
      const upload = await store.stage()
      layout.writeUpload(upload.folder)
      const { bundle } = await store.publish(upload, {
        indexDigest: `sha256:${sha256(layout.indexFile())}`,
        bundle: {
          uid: upload.uid,
          name,
          publishedAt,
          via: 'blobs',
          fileName: '',
          fileSizeBytes: 0,
          fileSha256: '',
        },
        examine: async (facts) => examine({ verb: 'examine', upload: upload.folder, bundle: facts }),
      })
      return bundle.uid
    },
    beginStop: () => stopping.abort(),
    async stop() {
      stopping.abort()
      await registry.stop()
      await store.close()
      if (given === undefined) await rm(folder, { recursive: true })
    },
  }
}

export type TestRegistry = Awaited<ReturnType<typeof startContentRegistry>>
