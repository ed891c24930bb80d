import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import {
  Interrupted,
  Refused,
  UploadGone,
  type UploadHost,
} from '../../../src/content/commands/upload/host.ts'
import { createMeter } from '../../../src/ctl/output.ts'
import { sendBlobs } from '../../../src/content/commands/upload/send-blobs.ts'
import type { BundleSource } from '../../../src/content/commands/upload/sources.ts'
import { Failure } from '../../../src/ctl/exit-codes.ts'
import { digestOf } from '../../support/content-uploads.ts'

const uid = '3f2c5e2e-93a4-4c43-8f0e-000000000001'
const content = Buffer.alloc(20_000_000, 'layer ')
const digest = digestOf(content)
const unreachable = () => new Failure('unreachable', 'the connection was closed')

/** A host that lacks one blob; a test replaces verbs. */
function createHost(verbs: Partial<UploadHost> = {}) {
  const got: Buffer[] = []
  const host: UploadHost = {
    signingKey: async () => undefined,
    begin: async () => ({ uid, message: '', isPublished: false }),
    missing: async () =>
      got.length > 0
        ? []
        : [{ digest, sizeBytes: content.length, heldBytes: 0, isManifest: false, isOptional: false }],
    send: async (_uid, _blob, body) => {
      got.push(await buffer(body.open()))
      return 'sent'
    },
    publish: async () => ({ uid, message: 'published', uploadPath: '', isNew: true }),
    find: async () => undefined,
    sendFile: () => Promise.reject(new Error('no file is sent')),
    ...verbs,
  }
  return { host, got }
}

/** A bundle with one blob. In order, its stream continues where it was left, as that of a compressed file does. */
function createSource(isInOrder: boolean) {
  let passes = 0
  const source: BundleSource = {
    index: Buffer.from('{}'),
    name: 'bundle',
    isInOrder,
    mayHave: () => true,
    async *blobs() {
      passes += 1
      let rest = content
      const open = () => {
        const bytes = isInOrder ? rest : content
        rest = rest.subarray(1_000)
        return Readable.from([bytes])
      }
      yield { digest, sizeBytes: content.length, open }
    },
    close: async () => undefined,
  }
  return { source, passes: () => passes }
}

const send = (host: UploadHost, source: BundleSource) =>
  sendBlobs({
    ...{ host, source, name: 'bundle', signature: undefined, connections: 2 },
    meter: createMeter({ isTTY: false } as never, () => undefined),
  })

it.each([false, true])(
  'a blob that needs a renewed token is sent whole a second time (source in order: %s)',
  async (isInOrder) => {
    const { source } = createSource(isInOrder)
    let attempts = 0
    const { host, got } = createHost({
      // As the client does it: the body is opened again for a request that was refused with 401.
      async send(_uid, _blob, body) {
        attempts += 1
        const opened = body.open()
        if (attempts === 1) {
          opened.on('error', () => undefined).destroy()
          got.push(
            await buffer(body.open()).catch(() => {
              throw new Interrupted(unreachable())
            }),
          )
        } else got.push(await buffer(opened))
        return 'sent'
      },
    })
    expect(await send(host, source)).toMatchObject({ uid, isNew: true })
    expect(got.map((bytes) => bytes.equals(content))).toEqual([true])
  },
)

it('a refused request is sent again when the host says, without another pass over the bundle', async () => {
  const { source, passes } = createSource(false)
  const times: number[] = []
  const { host, got } = createHost({
    async send(_uid, _blob, body) {
      times.push(performance.now())
      if (times.length < 3) throw new Refused(unreachable(), 1)
      got.push(await buffer(body.open()))
      return 'sent'
    },
  })
  await send(host, source)
  expect(got).toHaveLength(1)
  expect(passes()).toBe(1)
  expect(times[2]! - times[0]!).toBeGreaterThan(1_990)
})

it('an upload whose bundle was published by a request without a reply has succeeded', async () => {
  const { source } = createSource(false)
  let isPublished = false
  const { host, got } = createHost({
    async publish() {
      isPublished = true
      throw new Interrupted(unreachable())
    },
    async missing() {
      if (isPublished) throw new UploadGone('failed', 'there is no such upload')
      return got.length > 0
        ? []
        : [{ digest, sizeBytes: content.length, heldBytes: 0, isManifest: false, isOptional: false }]
    },
    find: async () => ({ uid, name: 'bundle' }) as never,
  })
  expect(await send(host, source)).toEqual({
    uid,
    isNew: true,
    message: 'the bundle bundle is published',
  })
})

it('an upload that was thrown away while it is sent is a failure, and is not begun again', async () => {
  const { source } = createSource(false)
  let begun = 0
  const { host } = createHost({
    async begin() {
      begun += 1
      return { uid, message: '', isPublished: false }
    },
    async send() {
      throw new UploadGone('failed', 'there is no such upload')
    },
  })
  await expect(send(host, source)).rejects.toThrow('there is no such upload')
  expect(begun).toBe(1)
})
