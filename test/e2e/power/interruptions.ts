import { existsSync } from 'node:fs'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { createLayout, type TestLayout } from '../../support/layouts.ts'
import { noise, createRandom } from '../../support/random.ts'
import { eventually } from '../host/eventually.ts'
import { bundlesPath, missingOf, planUpload, sendUpload, type Upload } from './client.ts'
import { startDaemon, type Daemon } from './daemon.ts'
import { createDisk, type JournalMode } from './disk.ts'
import { inspectContent } from './inspect.ts'

/** What ends a round. */
export type Interruption = 'power cut' | 'kill -9'

export interface InterruptionOptions {
  readonly seed: number
  /** One round each; the daemon is started once more after the last. */
  readonly rounds: readonly Interruption[]
  /** Whether the state folder is on the disk too; otherwise it is on one whose power is not cut. */
  readonly isStateOnDisk: boolean
}

/** What happened, so that a test sees that it has interrupted what it wanted to. */
export interface Interrupted {
  /** Publications that were answered. */
  published: number
  /** Publications whose answer did not come, and whose bundle was there afterwards, or not. */
  takenUnanswered: number
  leftUnanswered: number
  /** Uploads blob by blob that were continued, and those that had to begin again. */
  resumed: number
  begunAgain: number
}

interface Expectation {
  /** Answered with 201, by the digest of the index. */
  readonly certain: Map<string, string>
  /** Publications and deletions without an answer. */
  readonly unsure: Set<string>
}

const sharedLayer = 'shared '.repeat(20_000)
const keptBundles = 3

/**
 * Uploads bundles of both kinds at the same time, deletes others, and ends each round at a random moment. After each start it checks
 * that exactly the published bundles are there, complete, and nothing else; then the interrupted uploads are finished.
 */
async function interruptUploads(options: InterruptionOptions, stop: AbortSignal): Promise<Interrupted> {
  const { seed, rounds, isStateOnDisk } = options
  const random = createRandom(seed)
  const disk = await createDisk(192)
  const { home } = disk
  const contentDirectory = join(disk.folder, 'content')
  const stateDirectory = join(isStateOnDisk ? disk.folder : home, 'state')
  const counts = { published: 0, takenUnanswered: 0, leftUnanswered: 0, resumed: 0, begunAgain: 0 }
  const expectation: Expectation = { certain: new Map(), unsure: new Set() }
  let boot = 1
  let mode: JournalMode = 'ordered'
  let interrupted: Upload[] = []
  let last: Interruption = 'kill -9'
  let daemon: Daemon | undefined
  let isDatabaseGone = false
  /** How long uploads take here, so that every moment of them is hit. */
  let usualMs = 500

  async function start(round: number): Promise<Daemon> {
    const started = await startDaemon({ home, stateDirectory, contentDirectory, boot })
    daemon = started
    await check(started)
    await finish(started)
    await inspectContent(contentDirectory)
    // That a removed database lost commits is said, where the head beside it outlived the interruption.
    const isExpected = (line: string) => isDatabaseGone && line.includes('the database lost its last commits')
    const errors = started.errors().filter((line) => !isExpected(line))
    expect(errors, `errors after the start of round ${round}`).toEqual([])
    isDatabaseGone = false
    return started
  }

  async function check(running: Daemon): Promise<void> {
    const { certain, unsure } = expectation
    const reply = await running.ask('GET', bundlesPath)
    expect(reply, reply.text).toMatchObject({ status: 200 })
    const items = reply.json.items as { uid: string; indexDigest: string; damagedBlobs: number }[]
    const listed = new Map(items.map(({ uid, indexDigest }) => [indexDigest, uid]))
    expect(
      [...certain.keys()].filter((digest) => !listed.has(digest)),
      'published bundles that are lost',
    ).toEqual([])
    expect(
      [...listed.keys()].filter((digest) => !certain.has(digest) && !unsure.has(digest)),
      'bundles that were not published',
    ).toEqual([])
    expect(items.filter(({ damagedBlobs }) => damagedBlobs > 0)).toEqual([])
    expect((await inspectContent(contentDirectory)).sort()).toEqual([...listed.keys()].sort())
    for (const { indexDigest, isAsked } of interrupted) {
      if (listed.has(indexDigest)) counts.takenUnanswered += 1
      else if (isAsked) counts.leftUnanswered += 1
    }
    certain.clear()
    for (const [digest, uid] of listed) certain.set(digest, uid)
    unsure.clear()
    await checkUploads(running)
  }

  /** The folders of uploads are those that can be continued. After a kill nothing that was answered is missing. */
  async function checkUploads(running: Daemon): Promise<void> {
    const { json } = await running.ask('GET', '/v1/edge-mgmt/content/uploads')
    const uids = (json.items as { uid: string }[]).map(({ uid }) => uid)
    // A power cut leaves uploads that are looked at again, and removed if they are damaged.
    await eventually(async () => {
      const left = await readdir(join(contentDirectory, 'uploads'))
      expect(left.filter((uid) => !uids.includes(uid))).toEqual([])
    })
    if (last === 'power cut') return
    for (const { uid, isAsked, acknowledged, via } of interrupted) {
      if (via === 'file' || uid === undefined || isAsked) continue
      expect(uids, 'an upload that was begun before the kill').toContain(uid)
      const missing = new Map((await missingOf(running, uid)).map((blob) => [blob.digest, blob.heldBytes]))
      for (const [digest, bytes] of acknowledged)
        expect(missing.get(digest) ?? Infinity, 'bytes that were held').toBeGreaterThanOrEqual(bytes)
    }
  }

  /** The next upload succeeds, also of what was interrupted. */
  async function finish(running: Daemon): Promise<void> {
    const began = performance.now()
    const replies = await Promise.all(
      interrupted.map(async (upload) => {
        const { uid, indexDigest, via } = upload
        const wasThere = expectation.certain.has(indexDigest)
        const reply = await sendUpload(running, upload)
        expect(reply, reply.text).toMatchObject({ status: wasThere ? 200 : 201 })
        expectation.certain.set(indexDigest, reply.json.uid as string)
        if (via === 'file' || uid === undefined || wasThere) return
        if (upload.uid === uid) counts.resumed += 1
        else counts.begunAgain += 1
      }),
    )
    if (replies.length > 1) usualMs = (usualMs + performance.now() - began) / 2
    interrupted = []
  }

  async function runRound(round: number, interruption: Interruption): Promise<void> {
    const running = await start(round)
    const layouts = someLayouts(`${seed}.${round}`)
    const uploads = [planUpload(layouts[0], 'file'), planUpload(layouts[1], 'blobs')]
    const ends = new AbortController()
    const failures: unknown[] = []
    // From the interruption on every request may fail.
    const noteFailure = (error: unknown) => !ends.signal.aborted && failures.push(error)
    const work = [
      ...uploads.map((upload) => publish(running, upload).catch(noteFailure)),
      removeOldest(running).catch(noteFailure),
      writeBackSome(ends.signal),
    ]
    await untilMoment(uploads)
    ends.abort()
    if (interruption === 'power cut') await disk.cut()
    await running.kill()
    daemon = undefined
    await Promise.all(work)
    expect(failures, 'failures before the interruption').toEqual([])
    interrupted = uploads.filter(({ indexDigest }) => !expectation.certain.has(indexDigest))
    last = interruption
    if (interruption === 'power cut') {
      boot += 1
      mode = random.pick(['ordered', 'writeback'])
      await disk.unmount()
      await disk.mount(mode)
    }
    // The files are the truth.
    if (round % 4 === 1) await removeDatabase('content.db')
    isDatabaseGone = round % 4 === 3
    if (isDatabaseGone) await removeDatabase('edgehostd.db')
  }

  async function publish(running: Daemon, upload: Upload): Promise<void> {
    const { unsure, certain } = expectation
    unsure.add(upload.indexDigest)
    const reply = await sendUpload(running, upload)
    if (reply.status !== 201) throw new Error(reply.text)
    unsure.delete(upload.indexDigest)
    certain.set(upload.indexDigest, reply.json.uid as string)
    counts.published += 1
  }

  async function removeOldest(running: Daemon): Promise<void> {
    const { unsure, certain } = expectation
    const all = [...certain]
    for (const [digest, uid] of all.slice(0, Math.max(0, all.length - keptBundles))) {
      certain.delete(digest)
      unsure.add(digest)
      const reply = await running.ask('DELETE', `${bundlesPath}/${uid}`)
      if (reply.status !== 204) throw new Error(reply.text)
      unsure.delete(digest)
    }
  }

  /** Does at random moments what a file system does every few seconds: it writes its journal, and the bytes of some files. */
  async function writeBackSome(signal: AbortSignal): Promise<void> {
    const uploads = join(contentDirectory, 'uploads')
    while (!signal.aborted) {
      await sleep(random.below(usualMs / 2), undefined, { signal }).catch(() => undefined)
      const entries = await readdir(uploads, { recursive: true, withFileTypes: true }).catch(() => [])
      const files = entries.filter((entry) => entry.isFile() && random.isChosen(0.4))
      for (const path of [...files.map(({ parentPath, name }) => join(parentPath, name)), uploads]) {
        // It may have gone, and after the cut nothing can be written.
        const file = await open(path).catch(() => undefined)
        await file?.sync().catch(() => undefined)
        await file?.close()
      }
    }
  }

  /** A random moment; in a third of the rounds, shortly after blobs began to be moved into the store. */
  async function untilMoment(uploads: readonly Upload[]): Promise<void> {
    if (random.isChosen(0.66)) return sleep(random.below(usualMs * 2))
    const until = performance.now() + usualMs * 3
    while (!(await isPublishing()) && performance.now() < until) {
      if (uploads.every(({ indexDigest }) => expectation.certain.has(indexDigest))) return
      await sleep(1)
    }
    return sleep(random.below(usualMs / 3))
  }

  async function isPublishing(): Promise<boolean> {
    const folder = join(contentDirectory, 'uploads')
    return (await readdir(folder)).some((uid) => existsSync(join(folder, uid, 'publishing')))
  }

  const removeDatabase = (name: string) =>
    Promise.all(['', '-wal', '-shm'].map((end) => rm(join(stateDirectory, name + end), { force: true })))

  await disk.mount(mode)
  try {
    await mkdir(stateDirectory, { mode: 0o700 })
    for (const [round, interruption] of rounds.entries()) {
      stop.throwIfAborted()
      const what = `round ${round} of seed ${seed}, after a ${last}, ${mode}`
      await runRound(round, interruption).catch((error: unknown) => {
        const { message } = error as Error
        throw new Error(`${what}: ${message}\n${daemon?.log().slice(-4_000) ?? ''}`, { cause: error })
      })
    }
    await (await start(rounds.length)).kill()
    daemon = undefined
    return counts
  } finally {
    await daemon?.kill()
    await disk.remove()
  }
}

/** Runs chains of rounds at the same time; a failure ends all. */
export async function interruptAll(chains: readonly InterruptionOptions[]): Promise<Interrupted[]> {
  const stop = new AbortController()
  const running = chains.map((chain) =>
    interruptUploads(chain, stop.signal).catch((error: unknown) => {
      stop.abort(error)
      throw error
    }),
  )
  await Promise.allSettled(running)
  stop.signal.throwIfAborted()
  return Promise.all(running)
}

/** Two bundles that share layers, one of which earlier bundles have too. */
function someLayouts(name: string): [TestLayout, TestLayout] {
  const both = text(200_000)
  const layoutOf = (which: string) => {
    const layout = createLayout()
    const layers = [sharedLayer, both, text(1_500_000), text(700_000), text(40_000)]
    const images = [layout.image({ layers }), layout.image({ layers: [both, text(5_000)] })]
    for (const [at, image] of images.entries())
      layout.list(image, { 'org.opencontainers.image.ref.name': `registry.example/${which}-${at}:${name}` })
    return layout
  }
  return [layoutOf('file'), layoutOf('blobs')]
}

const text = (bytes: number) => noise(bytes / 2).toString('hex')
