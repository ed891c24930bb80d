import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readEncrypted } from '../../../../src/secrets/encrypted-file.ts'
import { createFetch } from '../../../../src/uplink/fetch.ts'
import { createDownload, type DownloadOptions } from '../../../../src/uplink/desired/download.ts'
import { deliveryOf, playDownload, type DeliveryWish } from '../../../support/played-download.ts'
import { noise } from '../../../support/random.ts'

const { signal } = new AbortController()
const token = 'token-of-the-host'

async function createWorld(wish: DeliveryWish = {}, more: Partial<DownloadOptions> = {}) {
  const platform = await playDownload(deliveryOf(wish))
  const state = mkdtempSync(join(tmpdir(), 'edgehostd-download-'))
  onTestFinished(() => rmSync(state, { recursive: true }))
  const folder = join(state, 'download')
  /** As after a restart. */
  const open = (idleMs = 5_000, key = Buffer.alloc(32)) =>
    createDownload({
      fetch: createFetch({ ...platform, now: () => Date.now(), timeoutMs: 5_000, idleMs }),
      ...{ folder, key, limitBytes: 10_000_000, reserveBytes: 0, syncBytes: 65_536, ...more },
    })
  const download = open()
  const attempt = (of = download) =>
    of.attempt({ path: '/v1/edgehosts/h/spc/download', token, etag: platform.delivery.etag }, signal)
  const file = join(folder, 'archive')
  /** As the cluster gets it. */
  const content = async () => {
    const whole = await open().wholeFile(platform.delivery.etag)
    return whole ? buffer(readEncrypted(whole)) : Buffer.alloc(0)
  }
  return { platform, folder, file, download, open, attempt, content }
}

const large = { definition: noise(1_000_000) }

describe('a download', () => {
  it('is whole with its sum, and nobody else may read it', async () => {
    const { platform, attempt, file, download, content } = await createWorld()
    expect(await attempt()).toMatchObject({ kind: 'whole', file: { path: file } })
    expect((await content()).equals(platform.delivery.bytes)).toBe(true)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(platform.asked).toEqual([{ range: undefined, token }])
    expect(await download.wholeFile(platform.delivery.etag)).toMatchObject({ path: file })
    // It is not asked for again.
    expect(await attempt()).toMatchObject({ kind: 'whole', file: { path: file } })
    expect(platform.asked).toHaveLength(1)
  })

  it('that is cut ten times continues where it was, also after restarts', async () => {
    const { platform, attempt, open, file, content } = await createWorld(large)
    platform.cutAfter = 95_000
    const received: number[] = []
    for (let cut = 1; cut <= 10; cut++) {
      const download = open()
      expect(await attempt(download)).toMatchObject({ kind: 'failed', hasProgress: true })
      received.push(download.progress()?.receivedBytes ?? 0)
    }
    // Of what the connection had when it was cut some may be lost.
    expect(received.at(-1)).toBeGreaterThan(400_000)
    platform.cutAfter = Infinity
    expect(await attempt(open())).toMatchObject({ kind: 'whole', file: { path: file } })
    expect((await content()).equals(platform.delivery.bytes)).toBe(true)
    expect(platform.asked.map(({ range }) => range)).toEqual([
      undefined,
      ...received.map((bytes) => `bytes=${bytes}-`),
    ])
  })

  it('is never readable on the disk: neither while it comes, nor when it is whole', async () => {
    const secret = 'hunter-of-two'
    const configuration = { spec: { profileVariables: [{ name: 'PASSWORD', value: secret }] } }
    const { platform, attempt, open, folder } = await createWorld({ ...large, configuration })
    expect(platform.delivery.bytes.includes(secret)).toBe(true)
    const isReadable = () =>
      readdirSync(folder).some((name) => {
        const bytes = readFileSync(join(folder, name))
        return bytes.includes(secret) || bytes.includes('cluster.json')
      })
    platform.cutAfter = 100_000
    expect(await attempt()).toMatchObject({ kind: 'failed', hasProgress: true })
    expect(isReadable()).toBe(false)
    platform.cutAfter = Infinity
    expect(await attempt(open())).toMatchObject({ kind: 'whole' })
    expect(isReadable()).toBe(false)
  })

  it('that another secret has encrypted, or a version that did not encrypt, begins anew', async () => {
    const { platform, attempt, open, folder } = await createWorld()
    await attempt()
    const note = join(folder, 'download.json')
    const { sealedKey, ...plain } = JSON.parse(readFileSync(note, 'utf8')) as { sealedKey: string }
    expect(Buffer.from(sealedKey, 'base64').length).toBeGreaterThan(32)
    expect(await open(5_000, Buffer.alloc(32, 1)).wholeFile(platform.delivery.etag)).toBeUndefined()
    expect(existsSync(folder)).toBe(false)
    await attempt()
    writeFileSync(note, JSON.stringify(plain))
    expect(await open().wholeFile(platform.delivery.etag)).toBeUndefined()
    expect(existsSync(folder)).toBe(false)
  })

  it('does not trust what a killed daemon or a power cut left behind the last sync', async () => {
    const { platform, attempt, open, file } = await createWorld(large)
    platform.cutAfter = 100_000
    await attempt()
    const { size } = statSync(file)
    expect(size).toBeGreaterThan(0)
    appendFileSync(file, Buffer.alloc(50_000))
    platform.cutAfter = Infinity
    expect(await attempt(open())).toMatchObject({ kind: 'whole', file: { path: file } })
    expect(platform.asked.at(-1)?.range).toBe(`bytes=${size}-`)
  })

  it('of something newer begins anew', async () => {
    const { platform, attempt, open, file } = await createWorld(large)
    platform.cutAfter = 100_000
    await attempt()
    Object.assign(platform, { delivery: deliveryOf({ number: 2 }), cutAfter: Infinity })
    expect(await attempt(open())).toMatchObject({ kind: 'whole', file: { path: file } })
    expect(platform.asked.at(-1)?.range).toBeUndefined()
  })

  it('with another sum is thrown away', async () => {
    const { platform, attempt, folder } = await createWorld(large)
    platform.sent = Buffer.from(platform.delivery.bytes)
    platform.sent[700_000] = (platform.sent[700_000] ?? 0) ^ 1
    expect(await attempt()).toEqual({ kind: 'sumWrong' })
    expect(existsSync(folder)).toBe(false)
  })

  it('ends when it is not wanted any more, and what came is kept', async () => {
    const { platform, download, open } = await createWorld(large)
    const stop = new AbortController()
    platform.misbehave = (_, reply) => {
      begin(platform, reply)
      reply.write(platform.delivery.bytes.subarray(0, 100_000))
    }
    const { etag } = platform.delivery
    const running = download.attempt({ path: '/x', token, etag }, stop.signal)
    await expect.poll(() => download.progress()?.receivedBytes, { timeout: 20_000 }).toBe(100_000)
    stop.abort(new Error('newer'))
    await expect(running).rejects.toThrow('newer')
    const next = open()
    expect(await next.wholeFile(etag)).toBeUndefined()
    expect(next.progress()?.receivedBytes).toBe(100_000)
  })

  it('that the disk has no room for is not begun', async () => {
    const { attempt } = await createWorld(large, { reserveBytes: 2 ** 60 })
    expect(await attempt()).toMatchObject({
      kind: 'noRoom',
      message: expect.stringContaining('disk') as string,
    })
  })
})

/** The right headers, with some replaced. */
function begin(
  { delivery }: Awaited<ReturnType<typeof playDownload>>,
  reply: ServerResponse,
  more: Record<string, string | number | undefined> = {},
  status = 200,
) {
  const headers: Record<string, string | number | undefined> = {
    ...{ etag: `"${delivery.etag}"`, 'content-length': delivery.bytes.length },
    ...{ 'repr-digest': `sha-256=:${delivery.sum.toString('base64')}:`, ...more },
  }
  reply.writeHead(
    status,
    Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >,
  )
}

describe('a platform that is broken or hostile', () => {
  const wrongDigest = `sha-256=:${Buffer.alloc(32).toString('base64')}:`
  it.each([
    ['that does not say how long it is', { 'content-length': undefined }, 'how long'],
    ['with more than this host takes', { 'content-length': 10_000_001 }, 'this host takes 10000000'],
    ['with another ETag', { etag: '"1-0"' }, 'announced'],
    ['without a sum', { 'repr-digest': undefined }, 'no Repr-Digest'],
    ['with a sum that is not that of the ETag', { 'repr-digest': wrongDigest }, 'not that of its ETag'],
    ['that is compressed', { 'content-encoding': 'gzip' }, 'compressed'],
  ])('a reply %s is not taken, and nothing stays of it', async (_, headers, message) => {
    const { platform, attempt, folder } = await createWorld()
    platform.misbehave = (__, reply) => {
      begin(platform, reply, headers)
      reply.end(platform.delivery.bytes)
    }
    expect(await attempt()).toMatchObject({
      ...{ kind: 'failed', hasProgress: false },
      cause: { kind: 'foreign', message: expect.stringContaining(message) as string },
    })
    expect(existsSync(folder)).toBe(false)
  })

  it('a body without an end is given up at the length that it has said', async () => {
    const { platform, attempt, file } = await createWorld()
    const { bytes } = platform.delivery
    platform.misbehave = (_, reply) => {
      begin(platform, reply)
      reply.strictContentLength = false
      reply.socket?.write(Buffer.concat([bytes, Buffer.alloc(1_000_000)]))
    }
    await attempt()
    expect(existsSync(file) ? statSync(file).size : 0).toBeLessThanOrEqual(bytes.length)
  })

  it('a body that stops is given up, and what came is kept', async () => {
    const { platform, open, attempt, file } = await createWorld(large)
    platform.misbehave = (_, reply) => {
      begin(platform, reply)
      reply.write(platform.delivery.bytes.subarray(0, 70_000))
    }
    const result = await attempt(open(200))
    expect(result).toMatchObject({ kind: 'failed', hasProgress: true, cause: { kind: 'timeout' } })
    expect(statSync(file).size).toBe(70_000)
  })

  it('hints without end are no reply', async () => {
    const { platform, attempt } = await createWorld()
    platform.misbehave = (_, reply) =>
      void reply.socket?.write('HTTP/1.1 103 x\r\nlink: a\r\n\r\n'.repeat(100))
    expect(await attempt()).toMatchObject({ kind: 'failed', cause: { kind: 'foreign' } })
  })

  it('200 where a part was asked for begins anew, and a page of something else takes nothing away', async () => {
    const { platform, attempt, open, file } = await createWorld(large)
    platform.cutAfter = 100_000
    await attempt()
    const { size } = statSync(file)
    platform.misbehave = (_, reply) => void reply.writeHead(200, { 'content-length': 5 }).end('hello')
    expect(await attempt(open())).toMatchObject({ kind: 'failed', cause: { kind: 'foreign' } })
    expect(statSync(file).size).toBe(size)
    platform.misbehave = (_, reply) => {
      begin(platform, reply)
      reply.end(platform.delivery.bytes)
    }
    expect(await attempt(open())).toMatchObject({ kind: 'whole', file: { path: file } })
  })

  it.each([
    ['another part', { 'content-range': 'bytes 5-9/10' }],
    ['a part of something else', { 'repr-digest': wrongDigest }],
    ['a part without its place', { 'content-range': undefined }],
  ])('%s is thrown away with what is there', async (_, headers) => {
    const { platform, attempt, folder, file } = await createWorld(large)
    platform.cutAfter = 100_000
    await attempt()
    const [{ size }, { length }] = [statSync(file), platform.delivery.bytes]
    platform.misbehave = (__, reply) => {
      const range = { 'content-range': `bytes ${size}-${length - 1}/${length}`, 'content-length': 10 }
      begin(platform, reply, { ...range, ...headers }, 206)
      reply.end('0123456789')
    }
    expect(await attempt()).toMatchObject({ kind: 'failed', cause: { kind: 'foreign' } })
    expect(existsSync(folder)).toBe(false)
  })

  it('416 makes the next attempt begin anew', async () => {
    const { platform, attempt, folder } = await createWorld(large)
    platform.cutAfter = 100_000
    await attempt()
    platform.misbehave = (_, reply) => void reply.writeHead(416).end()
    expect(await attempt()).toMatchObject({ kind: 'failed', status: 416 })
    expect(existsSync(folder)).toBe(false)
  })

  it.each([302, 101, 204, 401, 404, 429, 503])(
    'status %i is a cause, and the token is in none',
    async (status) => {
      const { platform, attempt } = await createWorld()
      platform.misbehave = (_, reply) => {
        if (status === 101) reply.socket?.end('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n')
        else
          reply
            .writeHead(status, { location: '/elsewhere', 'retry-after': '7' })
            .end(status === 204 ? undefined : JSON.stringify({ code: 'X', message: `refused ${token}` }))
      }
      const result = await attempt()
      expect(result).toMatchObject({ kind: 'failed', hasProgress: false })
      expect(JSON.stringify(result)).not.toContain(token)
      if (status >= 400) expect(result).toMatchObject({ status, retryAfter: '7' })
      expect(platform.asked).toHaveLength(1)
    },
  )
})
