import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { contentErrors } from '../../../src/content/codes.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { digestOfBytes, hexOfBytes, publishInProcess, writeUpload } from '../../support/content-bundles.ts'
import { hexesOf, storeInFolder } from '../../support/stored-content.ts'

const at = storeInFolder()
const { publish, loseIndex, blobsOnDisk, filesOf, names, fileOf } = at

const [red, green, blue] = [Buffer.from('red'), Buffer.from('green'), Buffer.from('blue')]

const optional = [green, blue]
const marksOf = ({ uid, publishedAt, name }: { uid: string; publishedAt: number; name: string }) => ({
  ...{ uid, publishedAt, name },
})

it('an upload of a known index that has more gives the bundle what it lacks, and the bundle stays the same one', async () => {
  const first = await publish({ name: 'paint', blobs: [red], optional })
  const entries = [{ name: 'docker.io/library/busybox', tag: '1.36' }]
  const two = await publish({ name: 'two', blobs: [Buffer.from('two')], entries, publishedAt: 2_000 })

  const upload = await at.store.stage()
  const order = await writeUpload(upload, { name: 'paint', blobs: [red], optional, publishedAt: 9_000 })
  await writeFile(join(upload.folder, 'blobs', hexOfBytes(green)), green)
  const united = await at.store.publish(upload, order)
  expect(united).toMatchObject({ isNew: false, addedBlobs: 1, damagedBlobs: 0 })
  expect(marksOf(united.bundle)).toEqual(marksOf(first.bundle))
  expect(at.store.hasBlob(digestOfBytes(green))).toBe(true)
  expect(names()).toEqual(['two', 'paint'])
  expect((await filesOf('bundles')).sort()).toEqual(
    [first, two].map(({ bundle }) => `${bundle.uid}.jsonl`).sort(),
  )
  expect(await filesOf('uploads')).toEqual([])

  // A third one has blue only; the bundle then has all three.
  const third = await at.store.stage()
  const last = await writeUpload(third, { name: 'paint', blobs: [red], optional })
  await writeFile(join(third.folder, 'blobs', hexOfBytes(blue)), blue)
  await expect(at.store.publish(third, last)).resolves.toMatchObject({ isNew: false, addedBlobs: 1 })
  await loseIndex()
  await at.start().open()
  expect(at.store.findBundle(first.bundle.uid)).toMatchObject({ blobCount: 4, publishedAt: 1_000 })
  await at.store.remove(first.bundle.uid, () => undefined)
  expect(await blobsOnDisk()).toEqual(
    [...hexesOf(Buffer.from('two')), two.bundle.indexDigest.slice(7)].sort(),
  )
})

it('a bundle stays as it is when it cannot be given what it lacks', async () => {
  const first = await publish({ name: 'paint', blobs: [red], optional })
  const before = await blobsOnDisk()
  const program: typeof publishInProcess = {
    async publish(order, more) {
      await publishInProcess.publish(order, more)
      throw new AppError(contentErrors.ContentUnavailable, 'no room')
    },
  }
  at.start({ program })
  const upload = await at.store.stage()
  const order = await writeUpload(upload, { name: 'paint', blobs: [red], optional })
  await writeFile(join(upload.folder, 'blobs', hexOfBytes(green)), green)
  await expect(at.store.publish(upload, order)).rejects.toThrow('no room')
  expect(await blobsOnDisk()).toEqual(before)
  expect(at.store.findBundle(first.bundle.uid)).toMatchObject({ blobCount: 2 })
  expect(at.store.hasBlob(digestOfBytes(green))).toBe(false)

  await at.start().open()
  await expect(at.store.publish(upload, order)).resolves.toMatchObject({ addedBlobs: 1 })
  expect(at.store.hasBlob(digestOfBytes(green))).toBe(true)
})

it('an upload that has some of the damaged blobs of its bundle repairs these, and the others stay damaged', async () => {
  const first = await publish({ name: 'paint', blobs: [red], optional })
  const upload = await at.store.stage()
  const order = await writeUpload(upload, { name: 'paint', blobs: [red], optional })
  await writeFile(join(upload.folder, 'blobs', hexOfBytes(green)), green)
  await at.store.publish(upload, order)
  await at.store.setAside(hexesOf(red, green))
  const again = await publish({ name: 'paint', blobs: [red], optional })
  expect(again).toMatchObject({ isNew: false, addedBlobs: 0, damagedBlobs: 1 })
  expect(at.store.hasBlob(digestOfBytes(red))).toBe(true)
  expect(at.store.hasBlob(digestOfBytes(green))).toBe(false)
  expect(await filesOf('damaged')).toEqual(hexesOf(green))
  expect(at.store.isWhole(first.bundle)).toBe(false)
})

it('a name of the damaged file itself repairs nothing', async () => {
  const { bundle } = await publish({ name: 'paint', blobs: [red] })
  const upload = await at.store.stage()
  await at.store.linkBlobs(upload, [digestOfBytes(red)])
  await writeFile(fileOf(red), 'rad')
  await at.store.setAside(hexesOf(red))
  const order = await writeUpload(upload, { name: 'paint', blobs: [red] }, new Set(hexesOf(red)))
  await expect(at.store.publish(upload, order)).resolves.toMatchObject({ isNew: false, damagedBlobs: 1 })
  expect(at.store.isWhole(bundle)).toBe(false)
})

it('a new bundle whose upload has only a name of a damaged file is refused, and the blob stays damaged', async () => {
  const { bundle } = await publish({ name: 'paint', blobs: [red] })
  const upload = await at.store.stage()
  await at.store.linkBlobs(upload, [digestOfBytes(red)])
  await writeFile(fileOf(red), 'rad')
  await at.store.setAside(hexesOf(red))
  const order = await writeUpload(upload, { name: 'other', blobs: [red, green] }, new Set(hexesOf(red)))
  await expect(at.store.publish(upload, order)).rejects.toThrow()
  expect(at.store.isWhole(bundle)).toBe(false)
  expect(names()).toEqual(['paint'])
  await writeFile(join(upload.folder, 'blobs', hexOfBytes(red)), red)
  await at.store.publish(upload, order)
  expect(at.store.isWhole(bundle)).toBe(true)
})
