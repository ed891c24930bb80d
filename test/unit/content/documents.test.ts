import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { createDocuments } from '../../../src/content/uploads/blob-upload.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-documents-'))
})
afterEach(() => rm(folder, { recursive: true }))

const digestOf = (number: number) => `sha256:${number.toString(16).padStart(64, '0')}`
const named = (number: number) => ({ digest: digestOf(number), sizeBytes: 1, isOptional: false })

/** Writes a manifest with so many layers. */
async function manifest(layers: number) {
  const config = { mediaType: mediaTypes.config, digest: digestOf(1_000_000), size: 2 }
  const bytes = Buffer.from(
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: mediaTypes.manifest, config },
      layers: Array.from({ length: layers }, (_, at) => ({
        ...{ mediaType: mediaTypes.layer, digest: digestOf(at), size: at },
      })),
    }),
  )
  const file = join(folder, 'manifest')
  await writeFile(file, bytes)
  const document = { digest: digestOf(2_000_000), sizeBytes: bytes.length }
  return { file, document: { ...document, documentType: mediaTypes.manifest, isOptional: false } }
}

it('a document of up to 256 KiB is read by the daemon, in less than 50 ms of the processor', async () => {
  const { read } = createDocuments({ name: () => Promise.reject(new Error('it is small')) })
  const { file, document } = await manifest(1_600)
  expect(document.sizeBytes).toBeGreaterThan(220_000)
  const before = process.threadCpuUsage()
  const blobs = [...(await read(document, file))]
  const { user, system } = process.threadCpuUsage(before)
  expect(blobs).toHaveLength(1_601)
  expect((user + system) / 1_000).toBeLessThan(50)
})

it('a larger one is read by the program, and each line of its answer is parsed when it is taken', async () => {
  const lines = `${JSON.stringify(named(1))}\n${JSON.stringify(named(2))}\nnot JSON\n`
  const { read } = createDocuments({ name: async () => ({ lines }) })
  const { file, document } = await manifest(3_000)
  const blobs = (await read(document, file))[Symbol.iterator]()
  expect(blobs.next()).toEqual({ done: false, value: named(1) })
  expect(blobs.next()).toEqual({ done: false, value: named(2) })
  expect(() => blobs.next()).toThrow(SyntaxError)
})
