import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createRecordParser } from '../../../src/content/format/record.ts'
import { bundleProgram } from '../../support/bundle-program.ts'
import { hexOfBytes, publishInProcess } from '../../support/content-bundles.ts'
import { driverStore } from '../../support/content-driver/store.ts'
import { createRandom } from '../../support/random.ts'

let folder: string
let driver: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-killed-'))
  driver = join(folder, 'driver.cjs')
  bundleProgram('../test/support/content-driver', driver)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs the driver and kills it at a random moment. @returns what it said */
async function runAndKill(place: string, seed: number): Promise<string[]> {
  const child = spawn(process.execPath, [driver, place, String(seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  // Every third one is killed while it starts or opens the store, the others after some of their work, however slow the machine is.
  const random = createRandom(seed)
  const lines = 1 + random.below(8)
  while (seed % 3 > 0 && child.exitCode === null && said.split('\n').length <= lines)
    await once(child.stdout, 'data')
  await delay(random.below(seed % 3 > 0 ? 15 : 200))
  child.kill('SIGKILL')
  await once(child, 'close')
  return said.split('\n')
}

/** What has to be on the disk, may be, and must not. */
function createExpectation() {
  const certain = new Set<string>()
  let unsure = new Set<string>()
  return {
    note(lines: readonly string[]) {
      unsure = new Set()
      for (const [what, uid = ''] of lines.map((line) => line.split(' '))) {
        if (what === 'published') certain.add(uid)
        if (what === 'deleting') certain.delete(uid)
        if (what === 'publishing' || what === 'deleting') unsure.add(uid)
        if (what === 'published' || what === 'deleted') unsure.delete(uid)
      }
    },
    check(found: readonly string[]) {
      expect(found.filter((uid) => !certain.has(uid) && !unsure.has(uid))).toEqual([])
      expect([...certain].filter((uid) => !found.includes(uid))).toEqual([])
      certain.clear()
      for (const uid of found) certain.add(uid)
    },
  }
}

async function inspect(place: string): Promise<string[]> {
  const store = driverStore(place, publishInProcess)
  await store.open()
  const found = store.index().list()
  const named = new Set<string>()
  for (const { uid } of found) {
    const parser = createRecordParser({ onBlob: ([digest]) => named.add(digest.slice(7)) })
    parser.add(await readFile(join(store.paths.bundles, `${uid}.jsonl`)))
    parser.end()
  }
  expect((await readdir(store.blobs)).sort()).toEqual([...named].sort())
  for (const hex of named) expect(hexOfBytes(await readFile(join(store.blobs, hex)))).toBe(hex)
  expect(await readdir(store.paths.damaged)).toEqual([])
  expect(await readdir(store.paths.bundles)).toHaveLength(found.length)
  for (const upload of await store.listStaged()) await store.removeStaged(upload)
  await store.close()
  return found.map(({ uid }) => uid)
}

it(
  'after 120 kills at random moments, some with a lost index, exactly the published bundles are there and whole',
  { timeout: 300_000 },
  async () => {
    const chain = async (place: string) => {
      const expectation = createExpectation()
      let published = 0
      let completed = 0
      for (let kill = 0; kill < 40; kill += 1) {
        const lines = await runAndKill(place, kill + 1)
        published += lines.filter((line) => line.startsWith('published')).length
        completed += lines.filter((line) => line.startsWith('completed')).length
        if (kill % 4 === 3)
          for (const end of ['', '-wal', '-shm']) await rm(join(place, `content.db${end}`), { force: true })
        expectation.note(lines)
        expectation.check(await inspect(place))
      }
      return { published, completed }
    }
    const done = await Promise.all(['a', 'b', 'c'].map((name) => chain(join(folder, name))))
    const sum = (counts: readonly number[]) => counts.reduce((one, other) => one + other, 0)
    expect(sum(done.map(({ published }) => published))).toBeGreaterThan(30)
    expect(sum(done.map(({ completed }) => completed))).toBeGreaterThan(0)
  },
)
