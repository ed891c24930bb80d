import { expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import { annotations as keys, artifactTypes, mediaTypes } from '../../../src/content/format/media-types.ts'
import { reasons, type BundleReason } from '../../../src/content/format/refusal.ts'
import { formatRecord, readRecord } from '../../../src/content/format/record.ts'
import { createLayout } from '../../support/layouts.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { walkLayout } from '../../support/walk-layout.ts'

const digest = `sha256:${'a'.repeat(64)}`
const nasty: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 60,
  '',
  'x',
  'constructor',
  '__proto__',
  '\u001b[2J\u202e\ud800',
  'a'.repeat(2_000),
  '../../../etc/passwd',
  digest,
  'sha512:abc',
  [],
  [[]],
  [null],
  {},
  { digest, size: 1, mediaType: mediaTypes.manifest },
  Object.fromEntries([['__proto__', { digest }]]),
  mediaTypes.index,
  mediaTypes.dockerManifest,
  artifactTypes.program,
  'busybox@sha256:x',
]

/** Changes nothing, or one to three fields anywhere in a value. */
function mutate<T>(random: Random, value: T): T {
  const copy: unknown = structuredClone(value)
  if (random.isChosen(0.75)) return copy as T
  for (let left = random.below(3); left >= 0; left--) {
    let node = copy as Record<string, unknown>
    for (;;) {
      const names = Object.keys(node)
      const name =
        random.isChosen(0.05) || names.length === 0 ? random.pick(['urls', 'data', 'x']) : random.pick(names)
      const inner = node[name]
      if (typeof inner === 'object' && inner !== null && random.isChosen(0.7)) {
        node = inner as Record<string, unknown>
        continue
      }
      if (random.isChosen(0.2)) Reflect.deleteProperty(node, name)
      else if (!Array.isArray(node) || name !== 'x') node[name] = structuredClone(random.pick(nasty))
      break
    }
  }
  return copy as T
}

/** A bundle of each kind of entry, changed at random; what names a changed document has its new digest. */
function randomBundle(random: Random) {
  const layout = createLayout()
  const put = (value: object, mediaType: string, more: object = {}) =>
    layout.putJson(mutate(random, value), mediaType, more)
  const image = (architecture: string) => {
    const config = put(
      { architecture, os: 'linux', created: '2026-01-01T00:00:00Z', rootfs: { diff_ids: ['x'] } },
      mediaTypes.config,
    )
    const layers = [layout.put(`layer ${architecture}`, mediaTypes.layerGzip)]
    return put(
      { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers, annotations: { a: 'b' } },
      mediaTypes.manifest,
      {
        platform: { os: 'linux', architecture },
      },
    )
  }
  const images = [image('amd64'), image('arm64')]
  if (random.isChosen(0.05)) for (const { digest: lost } of images) layout.remove(lost)
  const file = layout.put('elf', mediaTypes.fileContent, {
    annotations: { [keys.title]: random.isChosen(0.05) ? '../x' : 'bin/x' },
  })
  const config = { ...layout.put('{}', mediaTypes.emptyConfig), data: 'e30=' }
  const artifact = (artifactType: string) =>
    put(
      {
        schemaVersion: 2,
        artifactType,
        config,
        layers: [file],
        annotations: { [keys.title]: 'x', [keys.version]: '1' },
      },
      mediaTypes.manifest,
    )
  const chartConfig = put({ name: 'chart', version: '1.0.0' }, mediaTypes.chartConfig)
  const manifests = [
    {
      ...put({ schemaVersion: 2, manifests: images }, mediaTypes.index),
      annotations: { [keys.imageName]: 'busybox:1' },
    },
    {
      ...put({ schemaVersion: 2, config: chartConfig, layers: [file] }, mediaTypes.manifest),
      annotations: { [keys.refName]: 'r.example/c:1' },
    },
    artifact(artifactTypes.program),
    artifact(artifactTypes.file),
    { ...artifact(artifactTypes.definition), annotations: { [keys.contentType]: 'spc' } },
  ]
  if (random.isChosen(0.1)) layout.remove(random.pick(manifests).digest)
  const indexFile = Buffer.from(JSON.stringify(mutate(random, { schemaVersion: 2, manifests })))
  const damage = random.below(10)
  if (damage === 0) indexFile[random.below(indexFile.length)] = random.below(256)
  return {
    blobs: layout.blobs,
    indexFile: damage === 1 ? indexFile.subarray(0, random.below(indexFile.length)) : indexFile,
  }
}

it('any bundle is described, or refused with a reason and a place', { timeout: 300_000 }, async () => {
  const random = createRandom(8)
  const seen = new Map<string, number>()
  for (let round = 0; round < 4_000; round++) {
    const { blobs, indexFile } = randomBundle(random)
    let outcome: string
    try {
      const { entries, walk } = walkLayout(blobs, indexFile)
      outcome = 'described'
      const facts = {
        uid: '',
        name: '',
        indexDigest: '',
        publishedAt: 0,
        fileName: '',
        fileSizeBytes: 0,
        fileSha256: '',
        via: 'file',
        sizeBytes: 0,
        blobCount: 0,
      } as const
      const found: unknown[] = []
      await readRecord(
        [...formatRecord(facts, entries, [])].map((piece) => Buffer.from(piece)),
        { onEntry: (entry) => found.push(entry) },
      )
      expect(found).toEqual(entries)
      expect(walk.documents.size).toBeGreaterThan(0)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const { reason, place } = error.details as { reason: BundleReason; place: string }
      expect(error.code).toBe(reasons[reason])
      expect(place).toMatch(/^(?:index\.json|sha256:[0-9a-f]{64})/)
      expect(error.message.length).toBeLessThan(1_500)
      expect(error.message).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]|undefined|\[object/u)
      outcome = reason
    }
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
  }
  // The mutations reach every stage of the walk.
  expect([...seen.keys()]).toEqual(
    expect.arrayContaining([
      'described',
      'JsonInvalid',
      'FieldMissing',
      'FieldInvalid',
      'DigestUnsupported',
      'SizeDiffers',
      'MediaTypeDiffers',
      'BlobMissing',
      'NothingCarried',
      'LayersDiffer',
      'FileNameInvalid',
      'DefinitionInvalid',
    ]),
  )
})
