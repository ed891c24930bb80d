import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { IndexedBundle } from '../../../src/content/store/content-index.ts'
import { contentErrors } from '../../../src/content/codes.ts'
import { type CommandRunner } from '../../../src/system/runner.ts'
import {
  digestOfBytes,
  hexOfBytes,
  publishInProcess,
  putBundle,
  writeUpload,
} from '../../support/content-bundles.ts'
import { hexesOf, storeInFolder } from '../../support/stored-content.ts'

const at = storeInFolder()
const { publish, loseIndex, blobsOnDisk, filesOf, names, fileOf } = at

const [red, green, blue] = [Buffer.from('red'), Buffer.from('green'), Buffer.from('blue')]
const withoutId = (bundle: IndexedBundle) => ({ ...bundle, id: 0 })

it('a published bundle has its blobs and its record, and its upload is gone', async () => {
  const { bundle, isNew, upload } = await publish({ name: 'paint', blobs: [red, green] })
  expect(isNew).toBe(true)
  expect(bundle).toMatchObject({ uid: upload.uid, name: 'paint', blobCount: 3, via: 'blobs' })
  expect(await blobsOnDisk()).toEqual([...hexesOf(red, green), bundle.indexDigest.slice(7)].sort())
  expect(await filesOf('bundles')).toEqual([`${upload.uid}.jsonl`])
  expect(await filesOf('uploads')).toEqual([])
  expect(at.store.hasBlob(digestOfBytes(red))).toBe(true)
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
  await at.store.remove(one.bundle.uid, () => undefined)
  expect(await blobsOnDisk()).toEqual([...hexesOf(red, blue), two.bundle.indexDigest.slice(7)].sort())
  expect(names()).toEqual(['two'])
  await at.store.remove(two.bundle.uid, () => undefined)
  expect(await blobsOnDisk()).toEqual([])
  expect(await filesOf('bundles')).toEqual([])
})

it('an upload keeps a blob that it has linked when the bundle of the blob is deleted', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  const upload = await at.store.stage()
  expect(await at.store.linkBlobs(upload, [digestOfBytes(red), digestOfBytes(blue)])).toEqual([
    digestOfBytes(red),
  ])
  await at.store.remove(one.bundle.uid, () => undefined)
  expect(at.store.hasBlob(digestOfBytes(red))).toBe(false)
  const order = await writeUpload(upload, { name: 'two', blobs: [red] }, new Set([hexOfBytes(red)]))
  await at.store.publish(upload, order)
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
})

it('a lost database is made again from the records', async () => {
  await publish({ name: 'one', blobs: [red, green], publishedAt: 1 })
  await publish({ name: 'two', blobs: [red, blue], publishedAt: 2 })
  const before = { bundles: at.store.index().list().map(withoutId), blobs: await blobsOnDisk() }
  await loseIndex()
  await at.start().open()
  expect({ bundles: at.store.index().list().map(withoutId), blobs: await blobsOnDisk() }).toEqual(before)
  expect(at.store.hasBlob(digestOfBytes(blue))).toBe(true)
})

it.each([
  ['of another boot', false],
  ['damaged', true],
])('an index that is %s is made again', async (_which, damage) => {
  await publish({ name: 'one', blobs: [red] })
  await at.store.close()
  if (damage)
    await writeFile(join(at.folder, 'content.db'), 'not a database, but longer than its header '.repeat(100))
  await at.start({ bootId: damage ? 'boot 1' : 'boot 2' }).open()
  expect(names()).toEqual(['one'])
  expect(at.store.hasBlob(digestOfBytes(red))).toBe(true)
})

it('an older database gets the bundles that it lacks and loses those that are gone', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  at.store.index().database.sql.exec(`VACUUM INTO '${join(at.folder, 'older.db')}'`)
  await publish({ name: 'two', blobs: [green] })
  await at.store.remove(one.bundle.uid, () => undefined)
  await loseIndex()
  await writeFile(join(at.folder, 'content.db'), await readFile(join(at.folder, 'older.db')))
  await at.start().open()
  expect(names()).toEqual(['two'])
  expect(await blobsOnDisk()).toHaveLength(2)
})

it('a publication that fails changes nothing, and the upload may be published again', async () => {
  await publish({ name: 'one', blobs: [red] })
  const before = await blobsOnDisk()
  const full: CommandRunner = {
    run: async () => ({ exitCode: 1, stdout: '', stderr: 'sync: error syncing: Input/output error' }),
  }
  at.start({ runner: full })
  const upload = await at.store.stage()
  const order = await writeUpload(upload, { name: 'two', blobs: [red, green] })
  await expect(at.store.publish(upload, order)).rejects.toMatchObject({ code: 'ContentUnavailable' })
  expect(await blobsOnDisk()).toEqual(before)
  expect(names()).toEqual(['one'])
  expect(JSON.stringify(at.log.lines)).toContain('Input/output error')
  at.start()
  await expect(at.store.publish(upload, order)).resolves.toMatchObject({ isNew: true })
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
  at.start({ program: killed })
  const upload = await at.store.stage()
  const order = await writeUpload(upload, { name: 'two', blobs: [red, green] })
  void at.store.publish(upload, order)
  await expect.poll(blobsOnDisk).toContain(hexOfBytes(green))
  await at.start().open()
  expect(await blobsOnDisk()).toEqual(before)
  expect(names()).toEqual(['one'])
  expect(await readdir(join(upload.folder, 'blobs'))).toContain(hexOfBytes(green))
  await expect(at.store.publish(upload, order)).resolves.toMatchObject({ isNew: true })
})

it('blobs that no bundle names are removed at the opening and by the job', async () => {
  await publish({ name: 'one', blobs: [red] })
  const before = await blobsOnDisk()
  await writeFile(fileOf(blue), blue)
  await at.store.sweep()
  expect(await blobsOnDisk()).toEqual(before)
  await writeFile(fileOf(blue), blue)
  await at.start().open()
  expect(await blobsOnDisk()).toEqual(before)
})

/** As with a mount, another folder is at the path of the content. @returns puts the first one back */
async function mountOther(): Promise<() => Promise<void>> {
  const [content, first] = [join(at.folder, 'content'), join(at.folder, 'first')]
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
    await at.store.close()
    const mountDisk = await mountOther()
    await loseIndex()
    const program = { publish: async () => Promise.reject(new Error('no')) }
    await at.start(what === 'a publication that fails' ? { program } : {}).open()
    expect(names()).toEqual([])
    await mountDisk()
    if (what === 'the job') await at.store.sweep()
    else if (what === 'a reader') await at.store.open()
    else if (what === 'a deletion') await at.store.remove('unknown', () => undefined)
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
  await at.start({ requirePlace }).open()
  isMounted = false
  const mountDisk = await mountOther()
  const unavailable = { kind: contentErrors.ContentUnavailable }
  await expect(at.store.stage()).rejects.toMatchObject(unavailable)
  await expect(at.store.sweep()).rejects.toMatchObject(unavailable)
  expect(await readdir(join(at.folder, 'content'))).toEqual([])
  isMounted = true
  await mountDisk()
  await at.store.sweep()
  expect(names()).toEqual(['one'])
})

it('a removed folder is made again by the next upload', async () => {
  await publish({ name: 'one', blobs: [red] })
  await rm(join(at.folder, 'content'), { recursive: true })
  await publish({ name: 'two', blobs: [blue] })
  expect(names()).toEqual(['two'])
})

it('index.json of the store gives a tag to the newest bundle, and back when that goes', async () => {
  const entries = [{ name: 'docker.io/library/busybox', tag: '1.36' }]
  const tags = async () => {
    const { manifests } = JSON.parse(await readFile(join(at.folder, 'content', 'index.json'), 'utf8')) as {
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
  await at.store.remove(two.bundle.uid, () => undefined)
  expect(await tags()).toEqual([[digestOfBytes(red), 'docker.io/library/busybox:1.36']])
})

it('the bundle published last is the newest also after the clock was set back, without the database, and once older ones are deleted', async () => {
  const entries = [{ name: 'docker.io/library/app', tag: '1' }]
  const first = await publish({ name: 'first', blobs: [red], entries, publishedAt: 9_000 })
  const second = await publish({ name: 'second', blobs: [green], entries, publishedAt: 2_000 })
  expect(second.bundle.publishedAt).toBe(2_000)
  expect(names()).toEqual(['second', 'first'])
  await loseIndex()
  await at.start().open()
  expect(names()).toEqual(['second', 'first'])
  await at.store.remove(first.bundle.uid, () => undefined)
  await at.store.remove(second.bundle.uid, () => undefined)
  const third = await publish({ name: 'third', blobs: [blue], publishedAt: 3_000 })
  expect(third.bundle).toMatchObject({ publishedAt: 3_000, publication: 9_002 })
})

it('of records without a number of their publication the time counts', async () => {
  await mkdir(join(at.folder, 'content', 'bundles'), { recursive: true })
  for (const [uid, publishedAt] of [
    ['a', 2_000],
    ['b', 1_000],
  ] as const)
    await putBundle(at.folder, uid, { name: uid, blobs: [red], publishedAt })
  await at.store.open()
  expect(names()).toEqual(['a', 'b'])
  await publish({ name: 'new', blobs: [green], publishedAt: 1_500 })
  expect(names()).toEqual(['new', 'a', 'b'])
})

it('pins outlive a restart and the database', async () => {
  await at.store.open()
  await at.store.pins().set('cluster', ['sha256:aa'])
  await at.start().open()
  expect(at.store.pins().holders()).toEqual(new Map([['sha256:aa', ['cluster']]]))
  await at.store.pins().set('cluster', [])
  expect(at.store.pins().holders()).toEqual(new Map())
})
