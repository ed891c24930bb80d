import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/content/format/entry.ts'
import {
  formatRecord,
  readRecord,
  RecordDamaged,
  type BundleFacts,
  type RecordedBlob,
} from '../../../src/content/format/record.ts'
import { sha256 } from '../../support/layouts.ts'

const digests = Array.from({ length: 2_000 }, (_, index) => `sha256:${sha256(`${index}`)}`)
// In the order of a record.
const blobs = digests.sort().map((digest, index): RecordedBlob => [digest, index])
const entries: Entry[] = [
  {
    digest: blobs[0]?.[0] ?? '',
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    kind: 'image',
    name: 'docker.io/library/büsybox',
    tag: 'latest',
    sizeBytes: 5,
    platforms: [],
  },
]
const bundle: BundleFacts = {
  uid: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  name: 'core\n2',
  indexDigest: blobs[1]?.[0] ?? '',
  publishedAt: 1_790_000_000_000,
  fileName: '',
  fileSizeBytes: 0,
  fileSha256: '',
  via: 'blobs',
  sizeBytes: 12,
  blobCount: blobs.length,
}
const text = [...formatRecord(bundle, entries, blobs)].join('')

async function read(content: Uint8Array, pieceBytes = content.length) {
  const found = { entries: [] as Entry[], blobs: [] as RecordedBlob[] }
  const pieces = Array.from({ length: Math.ceil(content.length / pieceBytes) }, (_, index) =>
    content.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  )
  const facts = await readRecord(pieces, {
    onEntry: (entry) => found.entries.push(entry),
    onBlob: (blob) => found.blobs.push(blob),
  })
  return { ...found, facts }
}

describe('a record', () => {
  it.each([1, 7, 65_536, text.length * 2])(
    'is read as it was written, in pieces of %d bytes',
    async (pieceBytes) => {
      expect(await read(Buffer.from(text), pieceBytes)).toEqual({ facts: bundle, entries, blobs })
    },
  )

  it('has a line for the bundle, each entry and each blob, and the SHA-256 of them all', () => {
    const lines = text.trimEnd().split('\n')
    expect(lines).toHaveLength(1 + entries.length + blobs.length + 1)
    expect(lines[0]).toBe(JSON.stringify({ format: 1, bundle }))
    expect(lines[2]).toBe(`{"blob":["${blobs[0]?.[0]}",0]}`)
    expect(lines.at(-1)).toBe(`{"end":"${sha256(`${lines.slice(0, -1).join('\n')}\n`)}"}`)
  })

  it('has its blobs in the order of their digests, however they are given', () => {
    expect([...formatRecord(bundle, entries, blobs.toReversed())].join('')).toBe(text)
  })

  it('that is cut off at any byte is refused', async () => {
    const short = Buffer.from(
      [...formatRecord({ ...bundle, blobCount: 1 }, entries, blobs.slice(0, 1))].join(''),
    )
    for (let bytes = 0; bytes < short.length; bytes++)
      await expect(read(short.subarray(0, bytes), 100), `${bytes} bytes`).rejects.toThrow(RecordDamaged)
    await expect(read(short)).resolves.toBeDefined()
  })

  it('in which any byte was altered is refused', async () => {
    const short = Buffer.from(
      [...formatRecord({ ...bundle, blobCount: 1 }, entries, blobs.slice(0, 1))].join(''),
    )
    for (let at = 0; at < short.length; at++) {
      const altered = Buffer.from(short)
      altered[at] = (altered[at] ?? 0) ^ 1
      await expect(read(altered), `byte ${at}`).rejects.toThrow(RecordDamaged)
    }
  })

  it.each([
    ['a newer format', text.replace('"format":1', '"format":2'), 'has format 2'],
    ['lines after its end', `${text}{}\n`, 'has lines after its end'],
    ['an empty file', '', 'is cut off'],
    ['zeros, as a power cut leaves them', '\0'.repeat(4_096), 'is cut off'],
    ['another file', '{"schemaVersion":2}\n', 'does not begin as a record'],
    [
      'fewer blobs than it says',
      [...formatRecord(bundle, entries, blobs.slice(1))].join(''),
      'should have 2000',
    ],
  ])('%s is refused with its reason', async (_, content, reason) => {
    await expect(read(Buffer.from(content))).rejects.toThrow(reason)
  })
})
