import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { watchFolders, type FolderWatch } from '../../../src/system/folder-watch.ts'
import { createServiceWatch } from '../../../src/host/change-watch.ts'
import { recordingLog } from '../../fixtures/host/edges.ts'
import { waitFor } from '../../support/wait-for.ts'

let root: string
let watching: FolderWatch
let changes: number
const { log, lines } = recordingLog()

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'edgehostd-watch-'))
  changes = 0
  lines.length = 0
})
afterEach(async () => {
  watching.stop()
  await rm(root, { recursive: true })
})

const path = (name: string) => join(root, name)
const foldersBelow = () =>
  new Map([
    [root, /^(netif|resolve)$/],
    [path('netif'), /^links$/],
    [path('netif/links'), /./],
    [path('resolve'), /^resolv\.conf$/],
  ])
const watchAll = (retryMs?: number) => {
  watching = watchFolders({
    folders: foldersBelow(),
    onChange: () => (changes += 1),
    log,
    ...(retryMs === undefined ? {} : { retryMs }),
  })
}
/** Waits until the changes of `change` are reported, and no event of them is pending. */
async function isTold(change: () => Promise<unknown>): Promise<void> {
  const before = changes
  await change()
  await waitFor(() => expect(changes).toBeGreaterThan(before))
  await settled()
}
/** The kernel reports events in order: after this one, no earlier one is pending. */
async function settled(): Promise<void> {
  const marks = watchMarks()
  await writeFile(path('mark'), '')
  await marks.seen
  await unlink(path('mark'))
}
function watchMarks() {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const marks = watchFolders({
    folders: new Map([[root, /^mark$/]]),
    onChange: () => resolve(undefined),
    log,
  })
  return { seen: promise.finally(() => marks.stop()) }
}

it('a file that is written, replaced or removed is reported', async () => {
  await mkdir(path('resolve'))
  watchAll()
  const file = path('resolve/resolv.conf')
  await isTold(() => writeFile(file, 'nameserver 192.0.2.1\n'))
  await isTold(() => writeFile(file, 'nameserver 192.0.2.2\n'))
  await writeFile(path('resolve/new'), 'nameserver 192.0.2.3\n')
  await isTold(() => rename(path('resolve/new'), file))
  await isTold(() => unlink(file))
})

it('names that do not matter are not reported', async () => {
  await mkdir(path('resolve'))
  watchAll()
  await writeFile(path('other'), '')
  await writeFile(path('resolve/other'), '')
  await settled()
  expect(changes).toBe(0)
})

it('folders that are created later are reported, and changes in them', async () => {
  watchAll()
  expect(watching.isWatching()).toBe(true)
  await isTold(() => mkdir(path('netif/links'), { recursive: true }))
  await isTold(() => writeFile(path('netif/links/2'), 'DNS=192.0.2.1\n'))
})

it('a folder that replaced another is watched', async () => {
  await mkdir(path('netif/links'), { recursive: true })
  watchAll()
  for (let round = 0; round < 3; round += 1) {
    await isTold(() => rm(path('netif'), { recursive: true }))
    await isTold(() => mkdir(path('netif/links'), { recursive: true }))
    await isTold(() => writeFile(path('netif/links/2'), 'DNS=192.0.2.1\n'))
    await mkdir(path('spare/links'), { recursive: true })
    await isTold(() => rename(path('netif'), path(`old-${round}`)))
    await isTold(() => rename(path('spare'), path('netif')))
    await isTold(() => writeFile(path('netif/links/3'), 'DNS=192.0.2.1\n'))
  }
})

it('a refused watch is logged and tried again', async () => {
  // In place of a host whose inotify instances are used up: neither can be made to order here.
  await symlink('resolve', path('resolve'))
  watchAll(50)
  expect(watching.isWatching()).toBe(false)
  const before = changes
  await waitFor(() => expect(changes).toBeGreaterThan(before + 2))
  expect(lines).toMatchObject([{ level: 40, folder: path('resolve'), err: { code: 'ELOOP' } }])
  await unlink(path('resolve'))
  await mkdir(path('resolve'))
  await waitFor(() => expect(watching.isWatching()).toBe(true))
  await isTold(() => writeFile(path('resolve/resolv.conf'), ''))
})

it('no change of a folder is reported after the stop', async () => {
  watchAll()
  watching.stop()
  await mkdir(path('resolve'))
  await settled()
  expect(changes).toBe(0)
})

it('a service is read when its watch begins, at a burst of changes, and two seconds after each', async () => {
  await mkdir(path('resolve'))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const times: number[] = []
  const startedAt = performance.now()
  const watch = createServiceWatch({
    log,
    folders: foldersBelow(),
    onChange: () => times.push(Math.round(performance.now() - startedAt)),
  })
  expect(watch.isWatching()).toBe(false)
  watch.start()
  watching = watch
  expect(watch.isWatching()).toBe(true)
  vi.advanceTimersByTime(10_000)
  for (let each = 0; each < 20; each += 1) await writeFile(path('resolve/resolv.conf'), String(each))
  await settled()
  vi.advanceTimersByTime(10_000)
  expect(times).toEqual([100, 2_100, 10_100, 12_100])
})
