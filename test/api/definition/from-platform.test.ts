import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { definitionArchive } from '../../support/definition-archives.ts'
import { uploadDefinition } from '../../support/definition-upload.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
beforeEach(async () => {
  edge = await createTestEdge()
})
afterEach(() => edge.stop())

const { signal } = new AbortController()
const sumOf = (archive: Buffer) => createHash('sha256').update(archive).digest('hex')
let reads = 0
async function* pieces(archive: Buffer) {
  reads += 1
  yield archive.subarray(0, 10)
  yield archive.subarray(10)
}
const take = (archive: Buffer, sha256 = sumOf(archive)) =>
  edge.definition.takeFromPlatform(
    { content: pieces(archive), sizeBytes: archive.length, sha256, fileName: 'definition.tgz' },
    signal,
  )
const onDisk = async () => {
  const folder = join(edge.stateDirectory, 'definitions')
  return [await readdir(folder), await readdir(join(folder, 'staging'))].flat().sort()
}

it('a definition of the platform has a slot of its own: one that was uploaded stays', async () => {
  const { uploadPath } = await uploadDefinition(edge, (await edge.login('alice')).access)
  const archive = definitionArchive({ version: '2.0.0' })
  const path = await take(archive)
  const { file, definition } = await edge.definition.archiveOf(path)
  expect(definition).toMatchObject({ slot: 'platform', version: '1.0.0', sha256: sumOf(archive) })
  expect(sumOf(await readFile(file))).toBe(sumOf(archive))
  expect((await edge.definition.archiveOf(uploadPath)).definition.slot).toBe('overridden')
})

it('what is in the slot already is not read again, and the next one replaces it', async () => {
  const first = definitionArchive()
  const path = await take(first)
  reads = 0
  expect(await take(first)).toBe(path)
  expect(reads).toBe(0)
  expect(await take(definitionArchive({ version: '2.0.0' }))).not.toBe(path)
  await expect(edge.definition.archiveOf(path)).rejects.toMatchObject({ code: 'BadRequest' })
  await edge.definition.dropFromPlatform()
  expect(await onDisk()).toEqual(['staging'])
})

it('one that is damaged, or not the one that the platform names, is refused; the slot keeps what it has', async () => {
  const first = definitionArchive()
  const path = await take(first)
  const damaged = definitionArchive({ version: '2.0.0' })
  damaged[100] = (damaged[100] ?? 0) ^ 0xff
  await expect(take(damaged)).rejects.toMatchObject({ kind: { status: 400 } })
  expect((await edge.definition.archiveOf(path)).definition.sha256).toBe(sumOf(first))
  await expect(take(definitionArchive({ version: '3.0.0' }), 'f'.repeat(64))).rejects.toMatchObject({
    message: expect.stringContaining('another SHA-256') as string,
  })
})
