import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createContentHome, listWhole, type ContentHome } from '../../support/content-program.ts'
import { noise } from '../../support/random.ts'
import { contentClient, imageLayout, layoutTar, noReserve } from '../../support/content-uploads.ts'
import { contentProgram } from '../../support/programs.ts'
import { rawTar, sha256, type RawMember } from '../../support/tar-bytes.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const isRoot = process.getuid?.() === 0
const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

/** A small file system in memory. */
function mount(options: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-full-disk-'))
  undo.push(() => rmSync(folder, { recursive: true }))
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'edgehostd-test', folder])
  undo.push(() => execFileSync('umount', [folder]))
  return folder
}

function openHome(folder: string): ContentHome {
  const home = createContentHome(folder)
  undo.push(() => home.content.stop())
  return home
}

/** Does a step again and again until the file system is full. */
function untilFull(step: (index: number) => void): void {
  try {
    for (let index = 0; ; index += 1) step(index)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** Uses all blocks but these. @returns a function that gives them back */
function fill(folder: string, freeBytes = 0): () => void {
  const file = join(folder, 'filler')
  const descriptor = openSync(file, 'w')
  const block = Buffer.alloc(4_096, 1)
  untilFull(() => writeSync(descriptor, block))
  closeSync(descriptor)
  if (freeBytes > 0) execFileSync('truncate', [`--size=-${freeBytes}`, file])
  return () => rmSync(file)
}

/** Uses all inodes. @returns a function that gives them back */
function useInodes(folder: string): () => void {
  const fillers = join(folder, 'fillers')
  mkdirSync(fillers)
  untilFull((index) => writeFileSync(join(fillers, String(index)), ''))
  return () => rmSync(fillers, { recursive: true })
}

const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
// Of the system call itself: the check before it names the bytes that are missing.
const full = {
  code: 'StorageFull',
  status: 507,
  // With the file, where the system names it.
  message: expect.stringMatching(
    /^the disk( of \/.+)? is full; make room \(see: df\) and try again$/,
  ) as string,
}
const blobOf = (content: Buffer): RawMember => ({ name: `blobs/sha256/${sha256(content)}`, content })

describe.skipIf(!isRoot)('a disk that becomes full while content.cjs works', () => {
  it.each<[string, RawMember[]]>([
    ['in the middle of a large blob', [blobOf(noise(1_000_000, 1))]],
    ['between small blobs', Array.from({ length: 60 }, (_, index) => blobOf(noise(10_240, index)))],
  ])('%s: the upload is refused, and no unfinished blob is left', async (_what, members) => {
    const folder = mount('size=4m')
    const home = openHome(folder)
    const upload = home.makeUpload()
    const archive = rawTar(members)
    const unpacking = home.content.unpack({ upload, blobs: home.blobs, reserveBytes: 0 })
    const failed = errorOf(unpacking.result)
    await unpacking.write(archive.subarray(0, 600_000))
    await waitFor(
      () =>
        expect([...readdirSync(join(upload, 'parts')), ...readdirSync(join(upload, 'blobs'))]).not.toEqual(
          [],
        ),
      { timeout: 20_000 },
    )
    fill(folder)
    await unpacking.write(archive.subarray(600_000))
    await unpacking.end()
    expect(await failed).toMatchObject(full)
    listWhole(join(upload, 'blobs'))
    expect(readdirSync(join(upload, 'parts'))).toEqual([])
  })

  it('without inodes the upload is refused, and no unfinished blob is left', async () => {
    const home = openHome(mount('size=8m,nr_inodes=60'))
    const upload = home.makeUpload()
    const members = Array.from({ length: 60 }, (_, index) => blobOf(noise(100, index)))
    expect(await errorOf(home.unpack(upload, [rawTar(members)]))).toMatchObject(full)
    expect(listWhole(join(upload, 'blobs')).length).toBeGreaterThan(20)
    expect(readdirSync(join(upload, 'parts'))).toEqual([])
  })

  it('the record and the publication of a bundle are refused, and done as soon as there is space', async () => {
    const folder = mount('size=4m,nr_inodes=200')
    const home = openHome(folder)
    const upload = home.makeUpload()
    await home.unpack(upload, [layoutTar(imageLayout(['layer']))])
    const bundle = {
      ...{ uid: '7c9e6679-7425-40de-944b-e07fc1f90ae7', name: 'core', publishedAt: 0, via: 'file' as const },
      ...{ fileName: '', fileSizeBytes: 0, fileSha256: '' },
    }
    const examine = () => home.content.examine({ upload, bundle })
    const publish = () => home.content.publish({ upload, blobs: home.blobs })

    const makeRoom = fill(folder)
    expect(await errorOf(examine())).toMatchObject(full)
    makeRoom()
    expect(await examine()).toMatchObject({ entries: 1, blobCount: 4 })

    const giveInodesBack = useInodes(folder)
    expect(await errorOf(publish())).toMatchObject(full)
    giveInodesBack()
    expect(await publish()).toEqual({ movedCount: 4 })
    expect(listWhole(home.blobs)).toHaveLength(4)
  })

  it('the content is ready again by itself when the disk has space again, and not before', async () => {
    const directory = mount('size=1m')
    const edge = await createTestEdge({ content: { ...noReserve, directory } })
    undo.push(() => edge.stop())
    const recover = async () => edge.content.jobs?.find(({ name }) => name === 'content-recovery')?.run()
    const isReady = () => edge.content.checks?.every(({ holds }) => holds())
    await edge.content.unpin('cluster shop')
    const makeRoom = fill(directory)
    await expect(edge.content.renewPins('cluster shop', ['sha256:1'])).rejects.toMatchObject({
      code: 'StorageFull',
    })
    await recover()
    expect(isReady()).toBe(false)
    makeRoom()
    await recover()
    expect(isReady()).toBe(true)
    expect(readdirSync(directory)).not.toContain('probe')
  })

  it('the client gets 507, nothing of the upload is left, and the same upload is taken when there is space', async () => {
    const directory = mount('size=8m')
    const edge = await createTestEdge({
      contentProgram: contentProgram(),
      content: { ...noReserve, directory },
    })
    undo.push(() => edge.stop())
    const client = contentClient(edge, (await edge.login('alice')).access)
    const archive = layoutTar(imageLayout([noise(100_000, 1).toString('hex')]))
    const makeRoom = fill(directory, 131_072)
    const refused = await client.sendFile(archive)
    expect([refused.statusCode, refused.json()]).toMatchObject([507, { code: 'StorageFull' }])
    expect(readdirSync(join(directory, 'uploads'))).toEqual([])
    expect(readdirSync(join(directory, 'bundles'))).toEqual([])
    makeRoom()
    expect((await client.sendFile(archive)).statusCode).toBe(201)
  })
})
