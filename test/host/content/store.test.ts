import { execFileSync } from 'node:child_process'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { IndexedBundle } from '../../../src/content/store/content-index.ts'
import { createContentStore, type OpenStore } from '../../../src/content/store/open-store.ts'
import { contentErrors } from '../../../src/content/codes.ts'
import { createRunner, type CommandRunner } from '../../../src/system/runner.ts'
import {
  digestOfBytes,
  hexOfBytes,
  publishInProcess,
  putBundle,
  writeUpload,
} from '../../support/content-bundles.ts'
import { hexesOf, storedContent } from '../../support/stored-content.ts'
import { captureLog } from '../../support/https-server.ts'

let folder: string
let log: ReturnType<typeof captureLog>
let store: OpenStore

interface Parts {
  readonly bootId?: string
  readonly requirePlace?: () => Promise<void>
  readonly runner?: CommandRunner
  readonly program?: typeof publishInProcess
}

/** A daemon's start, on the same disk. */
function start(parts: Parts = {}): OpenStore {
  void (store as OpenStore | undefined)?.close()
  log = captureLog()
  store = createContentStore({
    ...{
      root: join(folder, 'content'),
      requirePlace: parts.requirePlace ?? (async () => undefined),
      reserve: { percent: 0, leastBytes: 0 },
      log: log.log,
    },
    ...{ indexFile: join(folder, 'content.db'), bootId: parts.bootId ?? 'boot 1' },
    ...{
      program: publishInProcess,
      runner: createRunner(),
      definitions: undefined,
      clock: { now: () => 5_000 },
    },
    ...parts,
  })
  return store
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-content-'))
  start()
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

const [red, green, blue] = [Buffer.from('red'), Buffer.from('green'), Buffer.from('blue')]

const { publish, loseIndex, blobsOnDisk, filesOf, names, fileOf } = storedContent(
  () => store,
  () => folder,
)
const withoutId = (bundle: IndexedBundle) => ({ ...bundle, id: 0 })

it('a published bundle has its blobs and its record, and its upload is gone', async () => {
  const { bundle, isNew, upload } = await publish({ name: 'paint', blobs: [red, green] })
  expect(isNew).toBe(true)
  expect(bundle).toMatchObject({ uid: upload.uid, name: 'paint', blobCount: 3, via: 'blobs' })
  expect(await blobsOnDisk()).toEqual([...hexesOf(red, green), bundle.indexDigest.slice(7)].sort())
  expect(await filesOf('bundles')).toEqual([`${upload.uid}.jsonl`])
  expect(await filesOf('uploads')).toEqual([])
  expect(store.hasBlob(digestOfBytes(red))).toBe(true)
})

it('the same index again is the bundle that is published, and nothing is written', async () => {
  const first = await publish({ name: 'paint', blobs: [red] })
  const again = await publish({ name: 'paint', blobs: [red] })
  expect(again).toMatchObject({ isNew: false, bundle: first.bundle })
  expect(await filesOf('bundles')).toHaveLength(1)
  expect(await filesOf('uploads')).toEqual([])
})

it('two bundles share a blob, which goes with the second of them', async () => {
  const one = await publish({ name: 'one', blobs: [red, green] })
  const two = await publish({ name: 'two', blobs: [red, blue] })
  await store.remove(one.bundle.uid, () => undefined)
  expect(await blobsOnDisk()).toEqual([...hexesOf(red, blue), two.bundle.indexDigest.slice(7)].sort())
  expect(names()).toEqual(['two'])
  await store.remove(two.bundle.uid, () => undefined)
  expect(await blobsOnDisk()).toEqual([])
  expect(await filesOf('bundles')).toEqual([])
})

it('an upload keeps a blob that it has linked when the bundle of the blob is deleted', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  const upload = await store.stage()
  expect(await store.linkBlobs(upload, [digestOfBytes(red), digestOfBytes(blue)])).toEqual([
    digestOfBytes(red),
  ])
  await store.remove(one.bundle.uid, () => undefined)
  expect(store.hasBlob(digestOfBytes(red))).toBe(false)
  const order = await writeUpload(upload, { name: 'two', blobs: [red] }, new Set([hexOfBytes(red)]))
  await store.publish(upload, order)
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
})

it('a lost database is made again from the records', async () => {
  await publish({ name: 'one', blobs: [red, green], publishedAt: 1 })
  await publish({ name: 'two', blobs: [red, blue], publishedAt: 2 })
  const before = { bundles: store.index().list().map(withoutId), blobs: await blobsOnDisk() }
  await loseIndex()
  await start().open()
  expect({ bundles: store.index().list().map(withoutId), blobs: await blobsOnDisk() }).toEqual(before)
  expect(store.hasBlob(digestOfBytes(blue))).toBe(true)
})

it.each([
  ['of another boot', false],
  ['damaged', true],
])('an index that is %s is made again', async (_which, damage) => {
  await publish({ name: 'one', blobs: [red] })
  await store.close()
  if (damage)
    await writeFile(join(folder, 'content.db'), 'not a database, but longer than its header '.repeat(100))
  await start({ bootId: damage ? 'boot 1' : 'boot 2' }).open()
  expect(names()).toEqual(['one'])
  expect(store.hasBlob(digestOfBytes(red))).toBe(true)
})

it('an older database gets the bundles that it lacks and loses those that are gone', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  store.index().database.sql.exec(`VACUUM INTO '${join(folder, 'older.db')}'`)
  await publish({ name: 'two', blobs: [green] })
  await store.remove(one.bundle.uid, () => undefined)
  await loseIndex()
  await writeFile(join(folder, 'content.db'), await readFile(join(folder, 'older.db')))
  await start().open()
  expect(names()).toEqual(['two'])
  expect(await blobsOnDisk()).toHaveLength(2)
})

it('a publication that fails changes nothing, and the upload may be published again', async () => {
  await publish({ name: 'one', blobs: [red] })
  const before = await blobsOnDisk()
  const full: CommandRunner = {
    run: async () => ({ exitCode: 1, stdout: '', stderr: 'sync: error syncing: Input/output error' }),
  }
  start({ runner: full })
  const upload = await store.stage()
  const order = await writeUpload(upload, { name: 'two', blobs: [red, green] })
  await expect(store.publish(upload, order)).rejects.toMatchObject({ code: 'ContentUnavailable' })
  expect(await blobsOnDisk()).toEqual(before)
  expect(names()).toEqual(['one'])
  expect(JSON.stringify(log.lines)).toContain('Input/output error')
  start()
  await expect(store.publish(upload, order)).resolves.toMatchObject({ isNew: true })
  expect(await readFile(fileOf(green), 'utf8')).toBe('green')
})

it('the blobs of a publication that a kill interrupted are back in their upload after the next start', async () => {
  const killed: typeof publishInProcess = {
    async publish(order, options) {
      await publishInProcess.publish(order, options)
      return new Promise(() => undefined)
    },
  }
  await publish({ name: 'one', blobs: [red] })
  const before = await blobsOnDisk()
  start({ program: killed })
  const upload = await store.stage()
  const order = await writeUpload(upload, { name: 'two', blobs: [red, green] })
  void store.publish(upload, order)
  await expect.poll(blobsOnDisk).toContain(hexOfBytes(green))
  await start().open()
  expect(await blobsOnDisk()).toEqual(before)
  expect(names()).toEqual(['one'])
  expect(await readdir(join(upload.folder, 'blobs'))).toContain(hexOfBytes(green))
  await expect(store.publish(upload, order)).resolves.toMatchObject({ isNew: true })
})

it('blobs that no bundle names are removed at the opening and by the job', async () => {
  await publish({ name: 'one', blobs: [red] })
  const before = await blobsOnDisk()
  await writeFile(fileOf(blue), blue)
  await store.sweep()
  expect(await blobsOnDisk()).toEqual(before)
  await writeFile(fileOf(blue), blue)
  await start().open()
  expect(await blobsOnDisk()).toEqual(before)
})

it.each([
  ['is cut off', (file: string) => truncate(file, 100)],
  [
    'was altered',
    async (file: string) => writeFile(file, (await readFile(file, 'utf8')).replace('"two"', '"owt"')),
  ],
  ['is empty', (file: string) => truncate(file, 0)],
])(
  'a record that %s is kept aside, and no blob is removed until its bundle is uploaded again',
  async (_how, damage) => {
    await publish({ name: 'one', blobs: [red] })
    const { upload } = await publish({ name: 'two', blobs: [green] })
    const before = await blobsOnDisk()
    await damage(join(folder, 'content', 'bundles', `${upload.uid}.jsonl`))
    await start().open()
    expect(names()).toEqual(['one'])
    expect(store.isComplete()).toBe(false)
    expect(await filesOf('bundles')).toContain(`${upload.uid}.jsonl.damaged`)
    await store.sweep()
    expect(await blobsOnDisk()).toEqual(before)
    expect(log.texts().join('\n')).toContain('no content is removed while this damaged record is kept')
    await start().open()
    expect(await blobsOnDisk()).toEqual(before)
  },
)

it('a pipe in the place of a record is named, and no blob is removed', async () => {
  await publish({ name: 'one', blobs: [red] })
  const { upload } = await publish({ name: 'two', blobs: [green] })
  const before = await blobsOnDisk()
  const record = join(folder, 'content', 'bundles', `${upload.uid}.jsonl`)
  await rm(record)
  execFileSync('mkfifo', [record])
  await start().open()
  expect(names()).toEqual(['one'])
  expect(store.isComplete()).toBe(false)
  expect(log.texts().join('\n')).toContain('the record of a bundle cannot be read')
  await store.sweep()
  expect(await blobsOnDisk()).toEqual(before)
})

/** As with a mount, another folder is at the path of the content. @returns puts the first one back */
async function mountOther(): Promise<() => Promise<void>> {
  const [content, first] = [join(folder, 'content'), join(folder, 'first')]
  await rename(content, first)
  await mkdir(content)
  return async () => {
    await rm(content, { recursive: true })
    await rename(first, content)
  }
}

it.each(['the job', 'a publication that fails', 'a deletion', 'a reader'])(
  'no blob of a disk that is mounted late is removed by %s, and its bundles are there again',
  async (what) => {
    const { bundle } = await publish({ name: 'one', blobs: [red, green] })
    await store.close()
    const mountDisk = await mountOther()
    await loseIndex()
    const program = { publish: async () => Promise.reject(new Error('no')) }
    await start(what === 'a publication that fails' ? { program } : {}).open()
    expect(names()).toEqual([])
    await mountDisk()
    if (what === 'the job') await store.sweep()
    else if (what === 'a reader') await store.open()
    else if (what === 'a deletion') await store.remove('unknown', () => undefined)
    else await expect(publish({ name: 'two', blobs: [blue] })).rejects.toThrow()
    expect(await blobsOnDisk()).toEqual([...hexesOf(red, green), bundle.indexDigest.slice(7)].sort())
    expect(names()).toEqual(['one'])
  },
)

it('a disk that is gone is no empty store where a mount is required', async () => {
  await publish({ name: 'one', blobs: [red] })
  let isMounted = true
  const requirePlace = async () => {
    if (!isMounted) throw new Error('not mounted')
  }
  await start({ requirePlace }).open()
  isMounted = false
  const mountDisk = await mountOther()
  const unavailable = { kind: contentErrors.ContentUnavailable }
  await expect(store.stage()).rejects.toMatchObject(unavailable)
  await expect(store.sweep()).rejects.toMatchObject(unavailable)
  expect(await readdir(join(folder, 'content'))).toEqual([])
  isMounted = true
  await mountDisk()
  await store.sweep()
  expect(names()).toEqual(['one'])
})

it('a removed folder is made again by the next upload', async () => {
  await publish({ name: 'one', blobs: [red] })
  await rm(join(folder, 'content'), { recursive: true })
  await publish({ name: 'two', blobs: [blue] })
  expect(names()).toEqual(['two'])
})

it('a damaged record is resolved by an upload of its bundle', async () => {
  const { upload } = await publish({ name: 'two', blobs: [green] })
  const record = join(folder, 'content', 'bundles', `${upload.uid}.jsonl`)
  await truncate(record, (await stat(record)).size - 5)
  await start().open()
  expect(store.isComplete()).toBe(false)
  await publish({ name: 'two', blobs: [green] })
  expect(store.isComplete()).toBe(true)
  expect(await filesOf('bundles')).toHaveLength(1)
})

it('a missing blob is damage: it is not served, and any upload that has it repairs it', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  await unlink(fileOf(red))
  await store.sweep()
  expect(store.hasBlob(digestOfBytes(red))).toBe(false)
  expect(store.isWhole(one.bundle)).toBe(false)
  expect(log.texts().filter((text) => text.includes('is missing and is not served'))).toHaveLength(1)
  await store.sweep()
  expect(log.texts().filter((text) => text.includes('is missing and is not served'))).toHaveLength(1)
  await start().open()
  expect(store.isWhole(one.bundle)).toBe(false)
  await publish({ name: 'two', blobs: [red, blue] })
  expect(store.isWhole(one.bundle)).toBe(true)
  expect(await filesOf('damaged')).toEqual([])
})

it('a damaged blob is set aside, stays damaged without the database, and the same bundle repairs it', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  await writeFile(fileOf(red), 'rad')
  await store.setAside([hexOfBytes(red)])
  expect(await filesOf('damaged')).toEqual([hexOfBytes(red)])
  await loseIndex()
  await start().open()
  expect(store.isWhole(one.bundle)).toBe(false)
  await expect(publish({ name: 'one', blobs: [red] })).resolves.toMatchObject({ isNew: false })
  expect(store.isWhole(one.bundle)).toBe(true)
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
  expect(await filesOf('damaged')).toEqual([])
})

it('a blob that an upload has linked does not count once it was found damaged', async () => {
  await publish({ name: 'one', blobs: [red, green] })
  await writeFile(fileOf(red), 'rot')
  const upload = await store.stage()
  await store.linkBlobs(upload, [red, green].map(digestOfBytes))
  await store.setAside([hexOfBytes(red)])
  const two = { name: 'two', blobs: [red, green] }
  const order = await writeUpload(upload, two, new Set([red, green].map(hexOfBytes)))
  await expect(store.publish(upload, order)).rejects.toThrow()
  expect(await blobsOnDisk()).not.toContain(hexOfBytes(red))
  expect(store.hasBlob(digestOfBytes(red))).toBe(false)

  await writeFile(join(upload.folder, 'blobs', hexOfBytes(red)), red)
  await store.publish(upload, order)
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
})

it('index.json of the store gives a tag to the newest bundle, and back when that goes', async () => {
  const entries = [{ name: 'docker.io/library/busybox', tag: '1.36' }]
  const tags = async () => {
    const { manifests } = JSON.parse(await readFile(join(folder, 'content', 'index.json'), 'utf8')) as {
      manifests: { digest: string; size: number; annotations?: Record<string, string> }[]
    }
    return manifests.map(({ digest, annotations }) => [
      digest,
      annotations?.['org.opencontainers.image.ref.name'],
    ])
  }
  await publish({ name: 'one', blobs: [red], entries, publishedAt: 1 })
  const two = await publish({ name: 'two', blobs: [green], entries, publishedAt: 2 })
  expect(await tags()).toEqual([
    [digestOfBytes(red), undefined],
    [digestOfBytes(green), 'docker.io/library/busybox:1.36'],
  ])
  await store.remove(two.bundle.uid, () => undefined)
  expect(await tags()).toEqual([[digestOfBytes(red), 'docker.io/library/busybox:1.36']])
})

it('the bundle published last is the newest also after the clock was set back, without the database, and once older ones are deleted', async () => {
  const entries = [{ name: 'docker.io/library/app', tag: '1' }]
  const first = await publish({ name: 'first', blobs: [red], entries, publishedAt: 9_000 })
  const second = await publish({ name: 'second', blobs: [green], entries, publishedAt: 2_000 })
  expect(second.bundle.publishedAt).toBe(2_000)
  expect(names()).toEqual(['second', 'first'])
  await loseIndex()
  await start().open()
  expect(names()).toEqual(['second', 'first'])
  await store.remove(first.bundle.uid, () => undefined)
  await store.remove(second.bundle.uid, () => undefined)
  const third = await publish({ name: 'third', blobs: [blue], publishedAt: 3_000 })
  expect(third.bundle).toMatchObject({ publishedAt: 3_000, publication: 9_002 })
})

it('of records without a number of their publication the time counts', async () => {
  await mkdir(join(folder, 'content', 'bundles'), { recursive: true })
  for (const [uid, publishedAt] of [
    ['a', 2_000],
    ['b', 1_000],
  ] as const)
    await putBundle(folder, uid, { name: uid, blobs: [red], publishedAt })
  await store.open()
  expect(names()).toEqual(['a', 'b'])
  await publish({ name: 'new', blobs: [green], publishedAt: 1_500 })
  expect(names()).toEqual(['new', 'a', 'b'])
})

it('pins outlive a restart and the database', async () => {
  await store.open()
  await store.pins().set('cluster', ['sha256:aa'])
  await start().open()
  expect(store.pins().holders()).toEqual(new Map([['sha256:aa', ['cluster']]]))
  await store.pins().set('cluster', [])
  expect(store.pins().holders()).toEqual(new Map())
})
