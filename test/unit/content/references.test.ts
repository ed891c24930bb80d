import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { bundleLimits } from '../../../src/content/format/limits.ts'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { namedByDocument, namedByIndexFile } from '../../../src/content/uploads/references.ts'

const digestOf = (number: number) => `sha256:${number.toString(16).padStart(64, '0')}`
const descriptors = (mediaType: string) =>
  Array.from({ length: bundleLimits.descriptors }, (_, at) => ({ mediaType, digest: digestOf(at), size: at }))
const bytesOf = (value: object) => Buffer.from(JSON.stringify({ schemaVersion: 2, ...value }))
const config = { mediaType: mediaTypes.config, digest: digestOf(1_000_000), size: 2 }

/** Turns of the event loop while work runs. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  const state = { isDone: false }
  const done = work.finally(() => (state.isDone = true))
  let turns = 0
  for (; !state.isDone; turns += 1) await setImmediate()
  return { turns, result: await done }
}
const document = (documentType: string, value: object) => {
  const bytes = bytesOf({ mediaType: documentType, ...value })
  const named = { digest: digestOf(2_000_000), sizeBytes: bytes.length, documentType, isOptional: false }
  return namedByDocument(named, bytes)
}

it.each([
  ['a manifest', () => document(mediaTypes.manifest, { config, layers: descriptors(mediaTypes.layer) }), 1],
  ['an index', () => document(mediaTypes.index, { manifests: descriptors(mediaTypes.manifest) }), 0],
  ['index.json', () => namedByIndexFile(bytesOf({ manifests: descriptors(mediaTypes.manifest) })), 0],
])('%s of the largest number of descriptors lets other work run while it is read', async (_, read, more) => {
  const { turns, result } = await turnsDuring(read())
  expect(result).toHaveLength(bundleLimits.descriptors + more)
  expect(turns).toBeGreaterThan(2)
})
