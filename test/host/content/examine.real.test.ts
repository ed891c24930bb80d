import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/content/format/entry.ts'
import { annotations as keys, artifactTypes, mediaTypes } from '../../../src/content/format/media-types.ts'
import { readRecord, type RecordedBlob } from '../../../src/content/format/record.ts'
import type { ExaminedBundle, Finding } from '../../../src/content/program/protocol.ts'
import { readRecorded, recordedLayouts } from '../../support/recorded-layouts.ts'
import { createLayout, sha256 } from '../../support/layouts.ts'
import { contentProgram } from '../../support/programs.ts'

const bundle: ExaminedBundle = {
  uid: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  name: 'core',
  publishedAt: 1_790_000_000_000,
  via: 'file',
  fileName: 'core.tar.zst',
  fileSizeBytes: 12,
  fileSha256: 'a'.repeat(64),
}

let upload = ''
beforeEach(() => {
  upload = mkdtempSync(join(tmpdir(), 'edgehostd-upload-'))
})
afterEach(() => rmSync(upload, { recursive: true, force: true }))

/** Runs content.cjs as the daemon does. */
function examine(memoryMiB = 256): Finding {
  const order = JSON.stringify({ verb: 'examine', upload, bundle })
  const flags = ['--max-semi-space-size=1', `--max-old-space-size=${memoryMiB}`]
  const output = execFileSync(process.execPath, [...flags, contentProgram()], { input: `${order}\n` })
  return JSON.parse(output.toString()) as Finding
}

async function readBack() {
  const entries: Entry[] = []
  const blobs: RecordedBlob[] = []
  const facts = await readRecord([readFileSync(join(upload, 'record.jsonl'))], {
    onEntry: (entry) => entries.push(entry),
    onBlob: (blob) => blobs.push(blob),
  })
  return { facts, entries, blobs }
}

describe('the program examines an upload', () => {
  it('the record names every blob of the bundle, also index.json, and what index.json lists', async () => {
    const layout = createLayout()
    const carried = layout.image({ more: { platform: { os: 'linux', architecture: 'amd64' } } })
    const other = layout.image({
      architecture: 'arm64',
      layers: ['arm'],
      more: { platform: { os: 'linux', architecture: 'arm64' } },
    })
    layout.list(layout.index([carried, other]), { [keys.imageName]: 'busybox:1.36' })
    const archive = layout.put('tgz', mediaTypes.definitionContent)
    layout.list(layout.artifact({ artifactType: artifactTypes.definition, layers: [archive] }), {
      [keys.contentType]: 'spc',
    })
    layout.remove(other.digest)
    layout.writeUpload(upload)
    const unnamed = join(upload, 'blobs', sha256('unnamed'))
    writeFileSync(unnamed, 'unnamed')

    const indexDigest = `sha256:${sha256(layout.indexFile())}`
    // The other image is not carried, so its layer and its configuration are not named.
    const named = [...layout.blobs].filter(
      ([, bytes]) => !['arm'].includes(String(bytes)) && !String(bytes).startsWith('{"architecture":"arm64"'),
    )
    const sizeBytes = named.reduce((sum, [, { length }]) => sum + length, layout.indexFile().length)
    const examined = {
      indexDigest,
      entries: 2,
      blobCount: named.length + 1,
      sizeBytes,
      architectures: ['amd64'],
      definition: { digest: archive.digest, sizeBytes: 3 },
    }
    expect(examine()).toEqual({ examined })
    const { facts, entries, blobs } = await readBack()
    expect(facts).toEqual({
      ...bundle,
      indexDigest,
      blobCount: named.length + 1,
      // The image of the other platform.
      lackingBlobs: 1,
      sizeBytes,
      definition: examined.definition,
    })
    expect(entries).toMatchObject([
      {
        kind: 'image',
        name: 'docker.io/library/busybox',
        tag: '1.36',
        platforms: [{ isCarried: true }, { isCarried: false }],
      },
      { kind: 'definition' },
    ])
    expect(blobs).toContainEqual([indexDigest, layout.indexFile().length])
    expect(blobs.map(([digest]) => digest.slice(7)).sort()).toEqual(
      [...named.map(([hex]) => hex), indexDigest.slice(7)].sort(),
    )
    expect(readFileSync(join(upload, 'blobs', indexDigest.slice(7)))).toEqual(layout.indexFile())
    expect(statSync(join(upload, 'record.jsonl')).mode & 0o777).toBe(0o600)
    expect(examine(), 'examined again').toEqual({ examined })
  })

  it.each(recordedLayouts)('the layout %s is examined with the sizes that its tool wrote', async (file) => {
    const { index, blobs: texts, layers } = readRecorded(file)
    mkdirSync(join(upload, 'blobs'))
    writeFileSync(join(upload, 'index.json'), index)
    for (const [hex, text] of Object.entries(texts)) writeFileSync(join(upload, 'blobs', hex), text)
    for (const [hex, sizeBytes] of Object.entries(layers)) {
      writeFileSync(join(upload, 'blobs', hex), '')
      truncateSync(join(upload, 'blobs', hex), sizeBytes)
    }
    const sizes = [
      index.length,
      ...Object.values(texts).map(({ length }) => length),
      ...Object.values(layers),
    ]
    const architectures =
      file.includes('all-platforms') || file.includes('manifest-push') ? ['amd64', 'arm64'] : ['amd64']
    expect(examine()).toEqual({
      examined: {
        indexDigest: `sha256:${sha256(index)}`,
        entries: file === 'ctr-export.json' ? 4 : 1,
        blobCount: sizes.length,
        sizeBytes: sizes.reduce((sum, size) => sum + size),
        architectures,
      },
    })
    const { facts, blobs } = await readBack()
    expect(blobs).toHaveLength(facts.blobCount)
  })

  it('a blob of another size than its descriptors say is refused, and no record is left', () => {
    const layout = createLayout()
    layout.list(layout.image({ layers: ['layer'] }))
    layout.writeUpload(upload)
    // What a power cut leaves of a file that was not synced.
    writeFileSync(join(upload, 'blobs', sha256('layer')), '')
    expect(examine()).toMatchObject({
      refused: {
        kind: { code: 'BundleInvalid', status: 400 },
        details: { reason: 'SizeDiffers', digest: `sha256:${sha256('layer')}` },
      },
    })
    expect(existsSync(join(upload, 'record.jsonl'))).toBe(false)
  })

  it('an index.json or manifest above the limit is refused without being read', () => {
    const layout = createLayout()
    layout.list({ mediaType: mediaTypes.manifest, digest: `sha256:${'a'.repeat(64)}`, size: 8 * 2 ** 20 + 1 })
    layout.writeUpload(upload)
    writeFileSync(join(upload, 'blobs', 'a'.repeat(64)), Buffer.alloc(8 * 2 ** 20 + 1))
    expect(examine()).toMatchObject({ refused: { details: { reason: 'ManifestTooLarge' } } })
    writeFileSync(join(upload, 'index.json'), Buffer.alloc(17 * 2 ** 20, ' '))
    expect(examine()).toMatchObject({ refused: { details: { reason: 'IndexTooLarge' } } })
  })

  it(
    'a bundle of 100,000 blobs and 10,000 images, one with a manifest of 5 MB, fits into 128 MiB of the program',
    { timeout: 300_000 },
    async () => {
      rmSync(upload, { recursive: true })
      // In memory, since a busy disk takes minutes for so many files.
      upload = mkdtempSync('/dev/shm/edgehostd-upload-')
      mkdirSync(join(upload, 'blobs'))
      const put = (text: string, mediaType: string) => {
        const hex = sha256(text)
        writeFileSync(join(upload, 'blobs', hex), text)
        return { mediaType, digest: `sha256:${hex}`, size: text.length }
      }
      // The content of a layer is not read here.
      const putLayer = (name: string) => {
        const hex = sha256(name)
        writeFileSync(join(upload, 'blobs', hex), '')
        return { mediaType: mediaTypes.layerGzip, digest: `sha256:${hex}`, size: 0 }
      }
      const image = (number: number, layerCount: number) => {
        const layers = Array.from({ length: layerCount }, (_, index) => putLayer(`${number} ${index}`))
        const rootfs = { diff_ids: layers.map(({ digest }) => digest) }
        const config = put(
          JSON.stringify({ os: 'linux', architecture: 'amd64', number, rootfs }),
          mediaTypes.config,
        )
        const manifest = put(JSON.stringify({ schemaVersion: 2, config, layers }), mediaTypes.manifest)
        return { ...manifest, annotations: { [keys.imageName]: `registry.example/image-${number}:1` } }
      }
      const large = image(0, 35_000)
      expect(large.size).toBeGreaterThan(5_000_000)
      const others = Array.from({ length: 9_999 }, (_, index) => image(index + 1, index % 2 === 0 ? 4 : 5))
      writeFileSync(
        join(upload, 'index.json'),
        JSON.stringify({ schemaVersion: 2, manifests: [large, ...others] }),
      )

      expect(examine(128)).toMatchObject({ examined: { entries: 10_000, architectures: ['amd64'] } })
      const { facts, blobs } = await readBack()
      expect(blobs).toHaveLength(facts.blobCount)
      expect(facts.blobCount).toBeGreaterThan(99_000)
    },
  )
})
