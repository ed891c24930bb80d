import { mkdirSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { formatRecord } from '../../../src/content/format/record.ts'
import {
  createContentHome,
  killChildren,
  layoutMembers,
  listWhole,
  type ContentHome,
} from '../../support/content-program.ts'
import { rawMember, rawTar, sha256 } from '../../support/tar-bytes.ts'

let home: ContentHome
let upload: string
beforeEach(() => {
  home = createContentHome()
  upload = home.makeUpload()
})
afterEach(async () => {
  await home.content.stop()
  home.remove()
})

const index = '{"schemaVersion":2,"manifests":[]}'
const digestOf = (content: string) => `sha256:${sha256(content)}`

/** Writes `record.jsonl` as `examine` does. */
function writeRecord(contents: readonly string[]): void {
  const blobs = [index, ...contents].map((content) => [digestOf(content), content.length] as const)
  const facts = {
    ...{ uid: 'u', name: 'n', indexDigest: digestOf(index), publishedAt: 0, via: 'file' as const },
    ...{ fileName: '', fileSizeBytes: 0, fileSha256: '', sizeBytes: 0, blobCount: blobs.length },
  }
  writeFileSync(join(upload, 'record.jsonl'), [...formatRecord(facts, [], blobs)].join(''))
}

/** An upload as `unpack` and `examine` leave it. */
function writeUpload(contents: readonly string[]): void {
  writeFileSync(join(upload, 'index.json'), index)
  for (const content of contents) writeFileSync(join(upload, 'blobs', sha256(content)), content)
  writeRecord(contents)
}

const publish = () => home.content.publish({ upload, blobs: home.blobs })

describe('publish', () => {
  it('gives the store what it does not have, and index.json as a blob; the upload keeps its files', async () => {
    writeUpload(['one', 'two'])
    writeFileSync(join(home.blobs, sha256('two')), 'two')
    const { ino } = statSync(join(home.blobs, sha256('two')))
    expect(await publish()).toEqual({ movedCount: 2 })
    expect(listWhole(home.blobs)).toEqual([index, 'one', 'two'].map((content) => sha256(content)).sort())
    expect(statSync(join(home.blobs, sha256('two'))).ino).toBe(ino)
    expect(listWhole(join(upload, 'blobs'))).toHaveLength(2)
    expect(await publish()).toEqual({ movedCount: 0 })
  })

  it('a blob that the store has need not be in the upload', async () => {
    writeUpload(['one'])
    writeRecord(['one', 'two'])
    writeFileSync(join(home.blobs, sha256('two')), 'two')
    expect(await publish()).toEqual({ movedCount: 2 })
  })

  it('a blob that neither has is refused, and the store is not changed', async () => {
    writeUpload(['one'])
    writeRecord(['one', 'two', 'three'])
    await expect(publish()).rejects.toMatchObject({
      code: 'BundleIncomplete',
      details: { missingCount: 2, missing: [{ digest: digestOf('two') }, { digest: digestOf('three') }] },
    })
    expect(readdirSync(home.blobs)).toEqual([])
  })

  it('an altered record fails and changes nothing', async () => {
    writeUpload(['one', 'two'])
    truncateSync(join(upload, 'record.jsonl'), 200)
    await expect(publish()).rejects.toThrow('failed')
    expect(JSON.stringify(home.lines)).toContain('is cut off')
    expect(readdirSync(home.blobs)).toEqual([])
  })
})

describe('10,000 blobs', () => {
  const contents = Array.from({ length: 10_000 }, (_, number) => `blob ${number}`)

  it('are unpacked and published, also when the program is killed meanwhile', async () => {
    function* archive() {
      const batch: Buffer[] = []
      for (const content of contents) {
        batch.push(rawMember({ name: `blobs/sha256/${sha256(content)}`, content }))
        if (batch.length === 100) yield Buffer.concat(batch.splice(0))
      }
      yield rawTar(layoutMembers([]))
    }
    const unpacked = await home.unpack(upload, archive())
    expect(unpacked).toMatchObject({ blobCount: 10_000 })
    writeRecord(contents)
    const killed = publish()
    killed.catch(() => undefined)
    // Ended while it links: some blobs are there.
    while (readdirSync(home.blobs).length < 100) await new Promise((resolve) => setImmediate(resolve))
    killChildren()
    await expect(killed).rejects.toThrow('was killed')
    const before = readdirSync(home.blobs).length
    const { movedCount } = await publish()
    expect(before + movedCount).toBe(10_001)
    expect(readdirSync(home.blobs)).toHaveLength(10_001)
  })
})

describe('verify', () => {
  it('tells what is damaged: other content, cut off, emptied, missing, no file', async () => {
    const contents = ['whole', 'flipped', 'cut off', 'emptied', 'missing', 'folder', 'whole too']
    for (const content of contents) writeFileSync(join(home.blobs, sha256(content)), content)
    const path = (content: string) => join(home.blobs, sha256(content))
    writeFileSync(path('flipped'), 'flippee')
    truncateSync(path('cut off'), 3)
    truncateSync(path('emptied'), 0)
    rmSync(path('missing'))
    rmSync(path('folder'))
    mkdirSync(path('folder'))
    const found = await home.content.verify({ blobs: home.blobs, digests: contents.map(digestOf) })
    expect(found).toEqual({
      damaged: ['flipped', 'cut off', 'emptied', 'missing', 'folder'].map(digestOf),
      sizeBytes: 5 + 7 + 3 + 9,
    })
  })

  it('reads at the given rate', async () => {
    const content = 'x'.repeat(2_000_000)
    writeFileSync(join(home.blobs, sha256(content)), content)
    const order = { blobs: home.blobs, digests: [digestOf(content)] }
    const start = performance.now()
    expect(await home.content.verify({ ...order, bytesPerSecond: 1_000_000 })).toMatchObject({ damaged: [] })
    expect(performance.now() - start).toBeGreaterThan(1_900)
  })

  it('ends with the reason of its signal', async () => {
    const content = 'x'.repeat(2_000_000)
    writeFileSync(join(home.blobs, sha256(content)), content)
    const order = { blobs: home.blobs, digests: [digestOf(content)], bytesPerSecond: 1_000 }
    const stop = new AbortController()
    const verified = home.content.verify(order, { signal: stop.signal })
    stop.abort()
    await expect(verified).rejects.toThrow('ended')
  })
})
