import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFetch } from '../../../../src/uplink/fetch.ts'
import {
  parseAnnouncement,
  openDesiredStore,
  type KeptOrder,
} from '../../../../src/uplink/desired/desired-store.ts'
import type { ClusterNow } from '../../../../src/uplink/desired/decide.ts'
import { createDownload } from '../../../../src/uplink/desired/download.ts'
import {
  createFollow,
  type ClusterToFollow,
  type DeliveryOutcome,
} from '../../../../src/uplink/desired/follow.ts'
import { captureLog } from '../../../support/https-server.ts'
import { clusterUid, deliveryOf, playDownload, tenantUid } from '../../../support/played-download.ts'

// Both cores may be busy.
const poll = <T>(read: () => T) => expect.poll(read, { timeout: 20_000, interval: 10 })

type Order = Parameters<ClusterToFollow['apply']>[0]

/** A host that follows a played platform; its rests after failures end at once, and are counted. */
async function createWorld() {
  const platform = await playDownload(deliveryOf())
  const stateDirectory = mkdtempSync(join(tmpdir(), 'edgehostd-follow-'))
  onTestFinished(() => rmSync(stateDirectory, { recursive: true }))
  const { log, lines } = captureLog()
  const world = {
    applied: [] as Order[],
    outcome: (() => ({ kind: 'applied', revision: 1 })) as (
      order: Order,
    ) => DeliveryOutcome | Promise<DeliveryOutcome>,
    cluster: undefined as ClusterNow | undefined,
    token: 'token' as string | undefined,
    tenantUid: tenantUid as string | undefined,
    rests: [] as number[],
    reasons: [] as string[],
  }
  const file = join(stateDirectory, 'platform/wanted.json')

  /** As a daemon does at its start. */
  async function start() {
    const stop = new AbortController()
    const follow = createFollow({
      store: await openDesiredStore(stateDirectory, log),
      download: createDownload({
        fetch: createFetch({ ...platform, now: () => Date.now(), timeoutMs: 5_000, idleMs: 5_000 }),
        key: Buffer.alloc(32),
        ...{ folder: join(stateDirectory, 'platform/download'), limitBytes: 10_000_000, reserveBytes: 0 },
      }),
      cluster: {
        current: () => world.cluster,
        async apply(order) {
          world.applied.push(order)
          return world.outcome(order)
        },
      },
      limitBytes: 1_000_000,
      path: () => '/v1/edgehosts/h/spc/download',
      token: () => world.token,
      tenantUid: () => world.tenantUid,
      onChange: () => world.reasons.push(follow.status().condition?.reason ?? 'none'),
      async pause(ms, signal) {
        if (ms < 86_400_000) {
          world.rests.push(ms)
          return
        }
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve()
          else signal.addEventListener('abort', () => resolve(), { once: true })
        })
      },
      ...{ random: () => 1, stopping: stop.signal, log },
    })
    const running = follow.run()
    const end = async () => {
      stop.abort(new Error('stop'))
      await running
    }
    onTestFinished(end)
    return {
      ...follow,
      end,
      heartbeat: () => follow.announce(parseAnnouncement(platform.delivery.header)),
      reason: () => follow.status().condition?.reason,
    }
  }
  const kept = () => JSON.parse(readFileSync(file, 'utf8')) as KeptOrder
  const running = (more: Partial<ClusterNow['newest']> = {}): ClusterNow => ({
    ...{ uid: clusterUid, name: 'edge-1', isDeleting: false },
    newest: { revision: 1, platformNumber: 1, outcome: 'good', reason: '', ...more },
    active: { revision: more.revision ?? 1, outcome: 'good' },
  })
  return { ...{ platform, world, start, kept, running, lines, file, stateDirectory } }
}

describe('a host follows its platform', () => {
  it('what is announced is fetched and applied once, and kept; nothing of the download stays', async () => {
    const { platform, world, start, kept, running, file, stateDirectory } = await createWorld()
    world.outcome = () => {
      world.cluster = running()
      return { kind: 'applied', revision: 1 }
    }
    const host = await start()
    for (let beat = 0; beat < 3; beat++) {
      host.heartbeat()
      await poll(host.reason).toBe('Applied')
    }
    expect(world.applied).toMatchObject([{ uid: clusterUid, name: 'edge-1', number: 1, isDeleted: false }])
    expect(platform.asked).toHaveLength(1)
    expect(kept()).toEqual({
      ...{ tenantUid, uid: clusterUid, name: 'edge-1', number: 1, etag: platform.delivery.etag },
      ...{ outcome: 'applied', message: '', accepted: 1, revision: 1 },
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(existsSync(join(stateDirectory, 'platform/download'))).toBe(false)
    expect(world.reasons).toContain('Downloading')
    // After a restart nothing is done again.
    await host.end()
    const again = await start()
    again.heartbeat()
    await poll(again.reason).toBe('Applied')
    expect(platform.asked).toHaveLength(1)
  })

  it('a daemon that was killed while it applied applies what is there again, without a download', async () => {
    const { platform, world, start } = await createWorld()
    const killed = Promise.withResolvers<DeliveryOutcome>()
    world.outcome = () => killed.promise
    const host = await start()
    host.heartbeat()
    await poll(() => world.applied.length).toBe(1)
    // As after kill -9: nothing more is written by the first one.
    world.outcome = () => ({ kind: 'refused', message: 'no' })
    const again = await start()
    again.heartbeat()
    await poll(again.reason).toBe('Refused')
    expect(world.applied).toHaveLength(2)
    expect(platform.asked).toHaveLength(1)
    killed.resolve({ kind: 'later', message: 'it is over' })
  })

  it('a refusal is kept with its message, and is not tried again', async () => {
    const { world, start, kept, platform } = await createWorld()
    world.outcome = () => ({ kind: 'refused', message: 'port 6443 is in use' })
    const host = await start()
    host.heartbeat()
    await poll(host.reason).toBe('Refused')
    host.heartbeat()
    host.contentChanged()
    expect(kept()).toMatchObject({ outcome: 'refused', message: 'port 6443 is in use', accepted: 0 })
    platform.delivery = deliveryOf({ number: 2 })
    host.heartbeat()
    await poll(() => world.applied.length).toBe(2)
  })

  it('missing content is tried again when content comes, from what is on the disk', async () => {
    const { world, start, kept, platform, running } = await createWorld()
    world.outcome = () => ({ kind: 'contentMissing', message: 'image web:1 is missing' })
    const host = await start()
    host.heartbeat()
    await poll(host.reason).toBe('ContentMissing')
    host.heartbeat()
    host.wake()
    await poll(host.reason).toBe('ContentMissing')
    expect(world.applied).toHaveLength(1)
    host.contentChanged()
    await poll(() => world.applied.length).toBe(2)
    world.outcome = () => {
      world.cluster = running()
      return { kind: 'applied', revision: 1 }
    }
    host.contentChanged()
    await poll(host.reason).toBe('Applied')
    expect(platform.asked).toHaveLength(1)
    expect(kept().outcome).toBe('applied')
  })

  it('a wrong sum is said, thrown away, and tried again a minute later', async () => {
    const { world, start, platform, lines } = await createWorld()
    platform.sent = Buffer.from(platform.delivery.bytes)
    platform.sent[600] = (platform.sent[600] ?? 0) ^ 1
    const host = await start()
    host.heartbeat()
    await poll(() => world.rests.length).toBeGreaterThan(0)
    expect(world.reasons).toContain('SumWrong')
    expect(world.rests[0]).toBeGreaterThanOrEqual(60_000)
    platform.sent = undefined
    await poll(() => world.applied.length).toBe(1)
    expect(JSON.stringify(lines)).toContain('another sum')
  })

  it('a platform that is broken is asked ever less often, and Retry-After is obeyed', async () => {
    const { world, start, platform } = await createWorld()
    platform.misbehave = (_, reply) => void reply.writeHead(503, { 'retry-after': '90' }).end('{}')
    const host = await start()
    host.heartbeat()
    await poll(() => world.rests.length).toBeGreaterThan(2)
    expect(Math.min(...world.rests)).toBeGreaterThanOrEqual(90_000)
    expect(world.reasons).toContain('DownloadFailed')
    platform.misbehave = (_, reply) => void reply.writeHead(500).end('{}')
    world.rests.length = 0
    await poll(() => world.rests.length).toBeGreaterThan(10)
    expect(Math.max(...world.rests)).toBe(300_000)
  })

  it('something newer ends the download of what is older', async () => {
    const { world, start, platform } = await createWorld()
    const old = platform.delivery
    platform.misbehave = (_, reply) => {
      const digest = `sha-256=:${old.sum.toString('base64')}:`
      reply.writeHead(200, {
        etag: `"${old.etag}"`,
        'repr-digest': digest,
        'content-length': old.bytes.length,
      })
      reply.write(old.bytes.subarray(0, 100))
    }
    const host = await start()
    host.heartbeat()
    await poll(() => host.status().download?.receivedBytes).toBe(100)
    Object.assign(platform, { misbehave: undefined, delivery: deliveryOf({ number: 2 }) })
    host.heartbeat()
    await poll(() => world.applied.map(({ number }) => number)).toEqual([2])
  })

  it('without a login nothing is asked; the heartbeat after it comes back to it', async () => {
    const { world, start, platform } = await createWorld()
    world.token = undefined
    const host = await start()
    host.heartbeat()
    await poll(() => host.status().number).toBe(1)
    expect(platform.asked).toEqual([])
    world.token = 'new'
    host.heartbeat()
    await poll(() => world.applied.length).toBe(1)
    expect(platform.asked[0]?.token).toBe('new')
  })

  it('a deletion is followed to its end', async () => {
    const { world, start, platform, kept, running } = await createWorld()
    platform.delivery = deliveryOf({ number: 2, isDeleted: true })
    world.cluster = running()
    world.outcome = () => {
      if (world.cluster) world.cluster = { ...world.cluster, isDeleting: true }
      return { kind: world.cluster ? 'deleting' : 'deleted' }
    }
    const host = await start()
    host.heartbeat()
    await poll(host.reason).toBe('Deleting')
    expect(host.status()).toMatchObject({ uid: clusterUid, accepted: 2 })
    world.cluster = undefined
    host.wake()
    await poll(host.reason).toBe('Deleted')
    expect(kept()).toMatchObject({ outcome: 'deleted', number: 2 })
    // The next cluster of this host begins at 1 again.
    platform.delivery = deliveryOf({ number: 1, uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a22' })
    world.outcome = () => ({ kind: 'applied', revision: 1 })
    host.heartbeat()
    await poll(() => kept().number).toBe(1)
    expect(kept()).toMatchObject({ uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a22', accepted: 1 })
  })

  it('what became of a deleted cluster is not told of the next one', async () => {
    const { world, start, platform } = await createWorld()
    platform.delivery = deliveryOf({ number: 2, isDeleted: true })
    world.outcome = () => ({ kind: 'deleted' })
    const host = await start()
    host.heartbeat()
    await poll(host.reason).toBe('Deleted')
    const uid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a22'
    const next = deliveryOf({ uid, name: 'edge-2' })
    platform.delivery = { ...next, header: `${next.header}, uid="${uid}"` }
    world.outcome = () => ({ kind: 'contentMissing', message: 'image web:1 is missing' })
    host.heartbeat()
    const seen = { ...host.status() }
    expect(seen).toMatchObject({ uid, number: 1, accepted: 0, seen: 0 })
    expect([seen.condition, seen.name]).toEqual([undefined, undefined])
    await poll(host.reason).toBe('ContentMissing')
    expect(host.status()).toMatchObject({ uid, name: 'edge-2', seen: 1 })
    // As a platform that wants nothing any more.
    host.announce(undefined)
    await poll(() => host.status().number).toBe(undefined)
    expect(host.reason()).toBe('ContentMissing')
  })

  it('a late reply with the deleted cluster does not make it again', async () => {
    const { world, start, platform, kept } = await createWorld()
    platform.delivery = deliveryOf({ number: 5, isDeleted: true })
    world.outcome = () => ({ kind: 'deleted' })
    const host = await start()
    host.heartbeat()
    await poll(host.reason).toBe('Deleted')
    platform.delivery = deliveryOf({ number: 4 })
    host.heartbeat()
    await poll(host.reason).toBe('NewerOnHost')
    host.heartbeat()
    await poll(() => platform.asked.length).toBe(2)
    expect(world.applied).toHaveLength(1)
    expect(kept()).toMatchObject({ number: 5, outcome: 'deleted' })
  })

  it.each([
    ['another number than the heartbeat says', { more: { number: 9 } }, 'has the number 9'],
    ['another platform', { tenantUid: 'tenant-2' }, 'another platform'],
    ['no archive', { members: [{ name: 'x', content: 'y' }] }, 'does not begin with cluster.json'],
  ])('what is of %s is refused and not fetched again', async (_, wish, message) => {
    const { world, start, platform, kept } = await createWorld()
    platform.delivery = deliveryOf(wish)
    const host = await start()
    host.heartbeat()
    await poll(host.reason).toBe('Refused')
    host.heartbeat()
    expect(kept().message).toContain(message)
    expect(world.applied).toEqual([])
    expect(platform.asked).toHaveLength(1)
  })

  it.each([
    ['refused', deliveryOf({ number: 7, tenantUid: 'tenant-3' }), 'Refused'],
    ['older', deliveryOf({ number: 1, tenantUid: 'tenant-2' }), 'NewerOnHost'],
  ])('what another platform wants first, and is %s, is fetched once', async (_, delivery, reason) => {
    const { world, start, platform, kept } = await createWorld()
    platform.delivery = deliveryOf({ number: 5 })
    world.outcome = () => ({ kind: 'deleted' })
    const host = await start()
    host.heartbeat()
    await poll(() => kept().number).toBe(5)
    // This host was registered anew elsewhere.
    Object.assign(world, { tenantUid: 'tenant-2' })
    platform.delivery = delivery
    for (let beat = 0; beat < 3; beat++) {
      host.heartbeat()
      await poll(host.reason).toBe(reason)
    }
    expect(platform.asked).toHaveLength(2)
    if (reason === 'Refused')
      expect(kept()).toMatchObject({ tenantUid: 'tenant-2', uid: '', name: '', number: 7, accepted: 0 })
  })

  it('what came of a download is removed when nothing is wanted any more, and not before that is known', async () => {
    const { start, platform, stateDirectory } = await createWorld()
    platform.delivery = deliveryOf({ definition: Buffer.alloc(300_000) })
    platform.misbehave = ({ headers }, reply) => {
      const { bytes, etag, sum } = platform.delivery
      if (headers.range !== undefined) {
        reply.writeHead(503).end('{}')
        return
      }
      const digest = { 'repr-digest': `sha-256=:${sum.toString('base64')}:`, etag: `"${etag}"` }
      reply.writeHead(200, { ...digest, 'content-length': bytes.length })
      reply.write(bytes.subarray(0, 200_000), () => reply.socket?.end())
    }
    const archive = join(stateDirectory, 'platform/download/archive')
    const host = await start()
    host.heartbeat()
    await poll(() => platform.asked.length).toBeGreaterThan(2)
    await host.end()
    const again = await start()
    again.wake()
    expect(statSync(archive).size).toBeGreaterThan(0)
    again.announce(undefined)
    await poll(() => existsSync(archive)).toBe(false)
  })

  it('a platform whose parts do not fit is asked ever less often, however much comes each time', async () => {
    const { world, start, platform } = await createWorld()
    platform.delivery = deliveryOf({ definition: Buffer.alloc(900_000) })
    platform.misbehave = ({ headers }, reply) => {
      const { bytes, etag, sum } = platform.delivery
      const digest = { 'repr-digest': `sha-256=:${sum.toString('base64')}:`, etag: `"${etag}"` }
      if (headers.range !== undefined) {
        reply.writeHead(206, { ...digest, 'content-range': 'bytes 1-2/3' }).end('xy')
        return
      }
      reply.writeHead(200, { ...digest, 'content-length': bytes.length })
      reply.write(bytes.subarray(0, 500_000), () => reply.socket?.end())
    }
    const host = await start()
    host.heartbeat()
    await poll(() => world.rests.length).toBeGreaterThan(12)
    expect(Math.max(...world.rests)).toBe(300_000)
  })

  it('what is not possible now is tried again later, without a download', async () => {
    const { world, start, platform } = await createWorld()
    let tries = 0
    world.outcome = () =>
      (tries += 1) < 3 ? { kind: 'later', message: 'the disk is full' } : { kind: 'applied', revision: 1 }
    const host = await start()
    host.heartbeat()
    await poll(() => tries).toBe(3)
    expect(world.rests.every((ms) => ms >= 10_000)).toBe(true)
    expect(platform.asked).toHaveLength(1)
  })
})
