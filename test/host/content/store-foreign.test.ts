import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { digestOfBytes, hexOfBytes, putBundle } from '../../support/content-bundles.ts'
import { storeInFolder } from '../../support/stored-content.ts'

const at = storeInFolder()
const { publish, blobsOnDisk, filesOf, names, fileOf } = at

const [red, green] = [Buffer.from('red'), Buffer.from('green')]
const root = () => join(at.folder, 'content')
const put = async (name: string, text: string | Buffer) => {
  await mkdir(join(root(), name, '..'), { recursive: true })
  await writeFile(join(root(), name), text)
}
const blobName = `blobs/sha256/${hexOfBytes(red)}`

/** An image layout as other programs write it; the fields of its index are in the same order. */
async function putLayout(): Promise<void> {
  await put('oci-layout', '{"imageLayoutVersion":"1.0.0"}')
  const { mediaType, digest } = { mediaType: 'application/octet-stream', digest: digestOfBytes(red) }
  const manifests = [{ mediaType, digest, size: red.length }]
  const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests }
  await put('index.json', JSON.stringify(index))
  await put(blobName, red)
}

/** Every file of the folder with its text. */
async function tree(): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(root(), { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      const file = join(entry.parentPath, entry.name)
      found[file.slice(root().length + 1)] = await readFile(file, 'utf8')
    }
  return found
}

async function refusal(): Promise<string> {
  await expect(at.start().open()).rejects.toMatchObject({ kind: { code: 'ContentUnavailable' } })
  expect(at.store.isUsable()).toBe(false)
  return at.log.texts().join('\n')
}

const foreign: readonly [what: string, put: () => Promise<void>, named: string][] = [
  ['an image layout', putLayout, 'oci-layout, index.json, blobs'],
  ['blobs alone', () => put(blobName, red), 'blobs'],
  ['blobs of another algorithm', () => put('blobs/sha512/abc', red), 'blobs'],
  ['an index of another program', () => put('index.json', '{\n  "schemaVersion": 2}'), 'index.json'],
  ['a folder of uploads of another program', () => put('uploads/photo.jpg', 'x'), 'uploads'],
  [
    'blobs and one of the folders of a store',
    async () => {
      await put(blobName, red)
      await mkdir(join(root(), 'bundles'))
    },
    'blobs',
  ],
  [
    'the folders of a store without a record, and a layout',
    async () => {
      await at.store.open()
      await putLayout()
    },
    'oci-layout, index.json, blobs',
  ],
]

it.each(foreign)(
  'a folder with %s is refused by name, and nothing in it is changed',
  async (_what, make, named) => {
    await make()
    const before = await tree()
    expect(await refusal()).toContain(`has ${named}, but no record of a bundle`)
    await expect(at.store.sweep()).rejects.toThrow()
    await expect(at.store.recover()).rejects.toThrow()
    await expect(at.store.stage()).rejects.toThrow()
    expect(await tree()).toEqual(before)
  },
)

it('the advised command moves a layout away as it is, and the store then opens by itself', async () => {
  await putLayout()
  await put('README', 'of the disk')
  const text = await refusal()
  const command = /: (cd .*? && mv .*?) && systemctl/.exec(text)?.[1] ?? ''
  execFileSync('sh', ['-ec', command])
  await at.store.recover()
  await publish({ name: 'one', blobs: [green] })
  expect(names()).toEqual(['one'])
  expect(await readFile(join(root(), 'layout', blobName))).toEqual(red)
  expect((await readdir(join(root(), 'layout'))).sort()).toEqual(['blobs', 'index.json', 'oci-layout'])
  expect(await readFile(join(root(), 'README'), 'utf8')).toBe('of the disk')
})

const own: readonly [what: string, make: () => Promise<unknown>][] = [
  ['that is missing', async () => undefined],
  ['that is empty', () => mkdir(root())],
  ['with files of others only', () => put('lost+found/x', 'x')],
  ['that a killed first start has begun', () => mkdir(join(root(), 'blobs', 'sha256'), { recursive: true })],
  ['of an opened store', () => at.store.open()],
  [
    'of a store whose index.json the disk has emptied',
    async () => {
      await at.store.open()
      await put('index.json', Buffer.alloc(100))
    },
  ],
  [
    'of a store whose first publication was killed',
    async () => {
      await at.store.open()
      await put(blobName, red)
    },
  ],
]

it.each(own)('a folder %s is opened', async (_what, make) => {
  await make()
  await at.start().open()
  const { bundle } = await publish({ name: 'one', blobs: [green] })
  expect(await blobsOnDisk()).toEqual([hexOfBytes(green), bundle.indexDigest.slice(7)].sort())
})

it.each([
  ['as a copy that lacks empty folders', () => rm(join(root(), 'damaged'), { recursive: true })],
  ['also where another program has written its index', () => put('index.json', '{"schemaVersion": 2}')],
])('a folder with the record of a bundle is one of a store, %s', async (_how, change) => {
  await at.store.open()
  await putBundle(at.folder, 'a', { name: 'one', blobs: [red] })
  await at.store.close()
  await change()
  await at.start().open()
  expect(names()).toEqual(['one'])
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
})

it('a store whose records are lost with their folder keeps its blobs', async () => {
  await publish({ name: 'one', blobs: [red] })
  const lost = await mkdtemp(join(at.folder, 'lost-'))
  await cp(join(root(), 'bundles'), lost, { recursive: true })
  await rm(join(root(), 'bundles'), { recursive: true })
  expect(await refusal()).toContain('blobs, but no record of a bundle')
  await cp(lost, join(root(), 'bundles'), { recursive: true })
  await at.store.recover()
  expect(names()).toEqual(['one'])
  expect(await filesOf('damaged')).toEqual([])
})
