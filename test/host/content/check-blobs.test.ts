import { mkdtemp, readdir, rm, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createContentProgram } from '../../../src/content/program/content-program.ts'
import { createBlobCheck } from '../../../src/content/store/check-blobs.ts'
import type { OpenStore } from '../../../src/content/store/open-store.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { digestOfBytes, hexOfBytes, publishInProcess, writeUpload } from '../../support/content-bundles.ts'
import { driverStore } from '../../support/content-driver/store.ts'
import { captureLog } from '../../support/https-server.ts'
import { contentProgram } from '../../support/programs.ts'

const day = 86_400_000
const blobs = Array.from({ length: 10 }, (_, at) => Buffer.from(`blob ${at} `.repeat(100)))
const never = new AbortController().signal

let folder: string
let store: OpenStore
let now: number
let read: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-check-'))
  store = driverStore(folder, publishInProcess)
  now = 1_000 * day
  read = []
  const upload = await store.stage()
  await store.publish(upload, await writeUpload(upload, { name: 'one', blobs }))
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

/** Of a daemon that was just started. */
function start() {
  const program = createContentProgram({
    runner: createRunner(),
    program: contentProgram(),
    log: captureLog().log,
  })
  return createBlobCheck({
    store,
    program: {
      verify(order, options) {
        read.push(...order.digests)
        return program.verify(order, options)
      },
    },
    settings: { days: 10, bytesPerSecond: 1_000_000_000 },
    clock: { now: () => now },
  })
}

it('a round reads every blob once in its days, over restarts, and the next begins when they are over', async () => {
  for (let hour = 0; hour < 230; hour += 10) {
    await start().run(never)
    now += 10 * 3_600_000
  }
  expect(new Set(read).size).toBe(11)
  expect(read).toHaveLength(11)
  const first = [...read]
  now += 2 * day
  await start().run(never)
  await start().run(never)
  expect(read.length).toBeGreaterThan(first.length)
  expect(read.slice(first.length)[0]).toBe(first[0])
})

it('a day reads no more than is due', async () => {
  const check = start()
  await check.run(never)
  now += day
  await check.run(never)
  await check.run(never)
  await check.run(never)
  expect(read.length).toBeLessThanOrEqual(4)
})

it('blobs that changed and blobs that are gone are set aside, and the store does not have them any more', async () => {
  const [altered, gone] = blobs
  if (!altered || !gone) throw new Error('no blobs')
  await writeFile(join(store.blobs, hexOfBytes(altered)), 'something else')
  await unlink(join(store.blobs, hexOfBytes(gone)))
  now += 11 * day
  const check = start()
  await check.run(never)
  now += 11 * day
  await check.run(never)
  expect((await readdir(store.paths.damaged)).sort()).toEqual([altered, gone].map(hexOfBytes).sort())
  expect(store.hasBlob(digestOfBytes(altered))).toBe(false)
  expect(store.hasBlob(digestOfBytes(gone))).toBe(false)
  expect(store.hasBlob(digestOfBytes(blobs[2] ?? altered))).toBe(true)
  expect(store.totals()).toMatchObject({ damagedBlobs: 2 })
})
