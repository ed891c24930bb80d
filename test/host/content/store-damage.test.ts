import { execFileSync } from 'node:child_process'
import { readFile, rm, stat, truncate, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { digestOfBytes, hexOfBytes, writeUpload } from '../../support/content-bundles.ts'
import { storeInFolder } from '../../support/stored-content.ts'

const at = storeInFolder()
const { publish, loseIndex, blobsOnDisk, filesOf, names, fileOf } = at

const [red, green, blue] = [Buffer.from('red'), Buffer.from('green'), Buffer.from('blue')]

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
    await damage(join(at.folder, 'content', 'bundles', `${upload.uid}.jsonl`))
    await at.start().open()
    expect(names()).toEqual(['one'])
    expect(at.store.isComplete()).toBe(false)
    expect(await filesOf('bundles')).toContain(`${upload.uid}.jsonl.damaged`)
    await at.store.sweep()
    expect(await blobsOnDisk()).toEqual(before)
    expect(at.log.texts().join('\n')).toContain('no content is removed while this damaged record is kept')
    await at.start().open()
    expect(await blobsOnDisk()).toEqual(before)
  },
)

it('a pipe in the place of a record is named, and no blob is removed', async () => {
  await publish({ name: 'one', blobs: [red] })
  const { upload } = await publish({ name: 'two', blobs: [green] })
  const before = await blobsOnDisk()
  const record = join(at.folder, 'content', 'bundles', `${upload.uid}.jsonl`)
  await rm(record)
  execFileSync('mkfifo', [record])
  await at.start().open()
  expect(names()).toEqual(['one'])
  expect(at.store.isComplete()).toBe(false)
  expect(at.log.texts().join('\n')).toContain('the record of a bundle cannot be read')
  await at.store.sweep()
  expect(await blobsOnDisk()).toEqual(before)
})

it('a damaged record is resolved by an upload of its bundle', async () => {
  const { upload } = await publish({ name: 'two', blobs: [green] })
  const record = join(at.folder, 'content', 'bundles', `${upload.uid}.jsonl`)
  await truncate(record, (await stat(record)).size - 5)
  await at.start().open()
  expect(at.store.isComplete()).toBe(false)
  await publish({ name: 'two', blobs: [green] })
  expect(at.store.isComplete()).toBe(true)
  expect(await filesOf('bundles')).toHaveLength(1)
})

it('a missing blob is damage: it is not served, and any upload that has it repairs it', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  await unlink(fileOf(red))
  await at.store.sweep()
  expect(at.store.hasBlob(digestOfBytes(red))).toBe(false)
  expect(at.store.isWhole(one.bundle)).toBe(false)
  expect(at.log.texts().filter((text) => text.includes('is missing and is not served'))).toHaveLength(1)
  await at.store.sweep()
  expect(at.log.texts().filter((text) => text.includes('is missing and is not served'))).toHaveLength(1)
  await at.start().open()
  expect(at.store.isWhole(one.bundle)).toBe(false)
  await publish({ name: 'two', blobs: [red, blue] })
  expect(at.store.isWhole(one.bundle)).toBe(true)
  expect(await filesOf('damaged')).toEqual([])
})

it('a damaged blob is set aside, stays damaged without the database, and the same bundle repairs it', async () => {
  const one = await publish({ name: 'one', blobs: [red] })
  await writeFile(fileOf(red), 'rad')
  await at.store.setAside([hexOfBytes(red)])
  expect(await filesOf('damaged')).toEqual([hexOfBytes(red)])
  await loseIndex()
  await at.start().open()
  expect(at.store.isWhole(one.bundle)).toBe(false)
  await expect(publish({ name: 'one', blobs: [red] })).resolves.toMatchObject({ isNew: false })
  expect(at.store.isWhole(one.bundle)).toBe(true)
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
  expect(await filesOf('damaged')).toEqual([])
})

it('a blob that an upload has linked does not count once it was found damaged', async () => {
  await publish({ name: 'one', blobs: [red, green] })
  await writeFile(fileOf(red), 'rot')
  const upload = await at.store.stage()
  await at.store.linkBlobs(upload, [red, green].map(digestOfBytes))
  await at.store.setAside([hexOfBytes(red)])
  const two = { name: 'two', blobs: [red, green] }
  const order = await writeUpload(upload, two, new Set([red, green].map(hexOfBytes)))
  await expect(at.store.publish(upload, order)).rejects.toThrow()
  expect(await blobsOnDisk()).not.toContain(hexOfBytes(red))
  expect(at.store.hasBlob(digestOfBytes(red))).toBe(false)

  await writeFile(join(upload.folder, 'blobs', hexOfBytes(red)), red)
  await at.store.publish(upload, order)
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
})

it.each(['one', 'two'])(
  'a stored blob that was altered without notice is mended by an upload that brings it, of bundle %s',
  async (name) => {
    const one = await publish({ name: 'one', blobs: [red, green] })
    await writeFile(fileOf(red), 'rad')
    await expect(publish({ name, blobs: [red, green] })).resolves.toMatchObject({ damagedBlobs: 0 })
    expect(await readFile(fileOf(red), 'utf8')).toBe('red')
    expect(await readFile(fileOf(green), 'utf8')).toBe('green')
    expect(await filesOf('damaged')).toEqual([])
    expect(at.store.isWhole(one.bundle)).toBe(true)
    expect(at.log.texts().join()).toContain('damaged blobs were repaired by an upload')
  },
)

it('a bundle that is read again has what was altered set aside, and an upload that has only linked it mends nothing', async () => {
  const { bundle } = await publish({ name: 'one', blobs: [red, green] })
  const upload = await at.store.stage()
  await at.store.linkBlobs(upload, [digestOfBytes(red)])
  await writeFile(fileOf(red), 'rad')
  await at.store.rereadBundle(bundle, new AbortController().signal)
  expect(at.store.isWhole(bundle)).toBe(false)
  expect(await filesOf('damaged')).toEqual([hexOfBytes(red)])
  expect(await at.store.dropDamaged(upload)).toEqual([digestOfBytes(red)])
})
