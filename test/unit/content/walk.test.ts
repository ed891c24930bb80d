import { describe, expect, it } from 'vitest'
import { bundleLimits } from '../../../src/content/format/refusal.ts'
import { annotations as keys, mediaTypes } from '../../../src/content/format/media-types.ts'
import { createWalk } from '../../../src/content/format/walk.ts'
import { createLayout, sha256, type TestLayout } from '../../support/layouts.ts'
import { refusalOf } from '../../support/refusal-of.ts'
import { walkLayout } from '../../support/walk-layout.ts'

const walkOver = (layout: TestLayout) => walkLayout(layout.blobs, layout.indexFile())

/* eslint-disable @typescript-eslint/no-explicit-any -- these tests put any value into any field */
interface Parts {
  readonly index: any
  readonly manifest: any
}
/* eslint-enable */

/**
 * A layout of one image whose index.json and manifest a test changes; what is named is changed before it is hashed.
 */
function changed(change: (parts: Parts) => void) {
  const layout = createLayout()
  const config = layout.putJson(
    { architecture: 'amd64', os: 'linux', rootfs: { diff_ids: [`sha256:${sha256('layer')}`] } },
    mediaTypes.config,
  )
  const layers = [layout.put('layer', mediaTypes.layer)]
  const manifest: object = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers }
  const parts = { index: { schemaVersion: 2, manifests: [{}] }, manifest }
  const inner = structuredClone(parts)
  change(inner)
  const named = layout.putJson(inner.manifest, mediaTypes.manifest)
  const outer = structuredClone({ index: { ...parts.index, manifests: [named] }, manifest })
  change(outer)
  return {
    blobs: layout.blobs,
    indexFile: Buffer.from(JSON.stringify(outer.index)),
    manifest: named.digest,
  }
}

describe('an index.json or manifest that breaks a rule is refused with its place', () => {
  const cases: [string, string, string, (parts: Parts) => void][] = [
    ['FieldMissing', 'index.json#schemaVersion', 'is missing', ({ index }) => delete index.schemaVersion],
    ['FieldInvalid', 'index.json#schemaVersion', 'is not 2', ({ index }) => (index.schemaVersion = 1)],
    ['FieldInvalid', 'index.json#manifests', 'must be a list', ({ index }) => (index.manifests = {})],
    ['BundleEmpty', 'index.json#manifests', 'docker save', ({ index }) => (index.manifests = null)],
    ['BundleEmpty', 'index.json#manifests', 'is empty', ({ index }) => (index.manifests = [])],
    ['FieldInvalid', 'index.json#manifests[1]', 'must be an object', ({ index }) => (index.manifests[1] = 7)],
    [
      'MediaTypeDiffers',
      'index.json#mediaType',
      'not an index',
      ({ index }) => (index.mediaType = mediaTypes.manifest),
    ],
    ['FieldInvalid', 'index.json', 'is a manifest', ({ index }) => (index.layers = [])],
    [
      'FieldMissing',
      'index.json#manifests[0].digest',
      'is missing',
      ({ index }) => delete index.manifests[0].digest,
    ],
    [
      'DigestUnsupported',
      'index.json#manifests[0].digest',
      'sha256',
      ({ index }) => (index.manifests[0].digest = `sha512:${'a'.repeat(128)}`),
    ],
    [
      'DigestUnsupported',
      'index.json#manifests[0].digest',
      'lower case',
      ({ index }) => (index.manifests[0].digest = `sha256:${'A'.repeat(64)}`),
    ],
    [
      'DigestUnsupported',
      'index.json#manifests[0].digest',
      'sha256',
      ({ index }) => (index.manifests[0].digest = '../../etc/passwd'),
    ],
    [
      'FieldInvalid',
      'index.json#manifests[0].size',
      'whole number',
      ({ index }) => (index.manifests[0].size = -1),
    ],
    [
      'FieldInvalid',
      'index.json#manifests[0].size',
      'whole number',
      ({ index }) => (index.manifests[0].size = '12'),
    ],
    [
      'FieldInvalid',
      'index.json#manifests[0].size',
      'whole number',
      ({ index }) => (index.manifests[0].size = 2 ** 53),
    ],
    [
      'SizeDiffers',
      'index.json#manifests[0].size',
      'but the blob has',
      ({ index }) => (index.manifests[0].size = 5),
    ],
    [
      'FieldInvalid',
      'index.json#manifests[0].mediaType',
      'media type',
      ({ index }) => (index.manifests[0].mediaType = 'x'),
    ],
    [
      'ManifestOutdated',
      'index.json#manifests[0].mediaType',
      'given up',
      ({ index }) =>
        (index.manifests[0].mediaType = 'application/vnd.docker.distribution.manifest.v1+prettyjws'),
    ],
    [
      'FieldInvalid',
      'index.json#manifests[0].annotations.x',
      'a text',
      ({ index }) => (index.manifests[0].annotations = { x: 1 }),
    ],
    [
      'FieldInvalid',
      'index.json#manifests[0].data',
      'is not the blob',
      ({ index }) => (index.manifests[0].data = 'e30='),
    ],
    ['FieldInvalid', 'MANIFEST#schemaVersion', 'is not 2', ({ manifest }) => (manifest.schemaVersion = 3)],
    ['FieldMissing', 'MANIFEST#config', 'is missing', ({ manifest }) => delete manifest.config],
    ['FieldInvalid', 'MANIFEST#layers', 'must be a list', ({ manifest }) => (manifest.layers = 'x')],
    [
      'FieldInvalid',
      'MANIFEST#layers[0].size',
      'whole number',
      ({ manifest }) => (manifest.layers[0].size = 1.5),
    ],
    [
      'MediaTypeDiffers',
      'MANIFEST#mediaType',
      'index.json#manifests[0] calls it',
      ({ manifest }) => (manifest.mediaType = mediaTypes.dockerManifest),
    ],
    ['FieldInvalid', 'MANIFEST#manifests', 'must not be', ({ manifest }) => (manifest.manifests = [])],
    [
      'LayersDiffer',
      'MANIFEST',
      'of 1 layers by its configuration and of 0 by its manifest',
      ({ manifest }) => (manifest.layers = []),
    ],
  ]
  it.each(cases)('%s at %s', (reason, place, words, change) => {
    const { blobs, indexFile, manifest } = changed(change)
    const { code, message, details } = refusalOf(() => walkLayout(blobs, indexFile))
    expect({ code, ...details }).toMatchObject({
      code: expect.stringMatching(/^Bundle/) as string,
      reason,
      place: place.replace('MANIFEST', manifest),
    })
    expect(message).toContain(words)
  })

  it.each([
    ['no JSON', 'nothing'],
    ['another value than an object', '[1]'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['a byte order mark', '\ufeff{}'],
  ])('%s is JsonInvalid', (_, text) => {
    const { details } = refusalOf(() => createWalk().addIndexFile(Buffer.from(text as string)))
    expect(details).toMatchObject({ reason: 'JsonInvalid', place: 'index.json' })
  })

  it('a key __proto__ has no effect', () => {
    const text = '{"__proto__":{"schemaVersion":2,"manifests":[]},"constructor":1}'
    expect(refusalOf(() => createWalk().addIndexFile(Buffer.from(text))).details).toMatchObject({
      reason: 'FieldMissing',
      place: 'index.json#schemaVersion',
    })
  })
})

describe('what a bundle needs', () => {
  it('an image without one of its layers is refused with the digest', () => {
    const layout = createLayout()
    const manifest = layout.image({ layers: ['one', 'two'] })
    layout.list(manifest)
    const lost = `sha256:${sha256('two')}`
    layout.remove(lost)
    const { code, details } = refusalOf(() => walkOver(layout))
    expect(code).toBe('BundleIncomplete')
    expect(details).toMatchObject({
      reason: 'BlobMissing',
      place: `${manifest.digest}#layers[1]`,
      missingCount: 1,
      missing: [{ digest: lost, sizeBytes: 3, namedBy: `${manifest.digest}#layers[1]` }],
    })
  })

  it('an image without its configuration is refused', () => {
    const layout = createLayout()
    const manifest = layout.image()
    layout.list(manifest)
    layout.remove(
      (JSON.parse(String(layout.blobs.get(manifest.digest.slice(7)))) as { config: { digest: string } })
        .config.digest,
    )
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({
      reason: 'BlobMissing',
      place: `${manifest.digest}#config`,
    })
  })

  it('a manifest that index.json lists and the bundle lacks is refused', () => {
    const layout = createLayout()
    layout.list(layout.image())
    const lost = layout.image({ architecture: 'arm64', layers: ['other'] })
    layout.list(lost)
    layout.remove(lost.digest)
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({
      reason: 'BlobMissing',
      place: 'index.json#manifests[1]',
    })
  })

  it('an image of an index that is for another platform and not carried is shown as such', () => {
    const layout = createLayout()
    const amd64 = layout.image({ more: { platform: { os: 'linux', architecture: 'amd64' } } })
    const arm64 = layout.image({
      architecture: 'arm64',
      layers: ['arm'],
      more: { platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } },
    })
    layout.list(layout.index([amd64, arm64]))
    layout.remove(arm64.digest)
    const { entries, architectures } = walkOver(layout)
    expect(entries[0]).toMatchObject({
      kind: 'image',
      platforms: [
        { os: 'linux', architecture: 'amd64', digest: amd64.digest, isCarried: true },
        { os: 'linux', architecture: 'arm64', variant: 'v8', digest: arm64.digest, isCarried: false },
      ],
    })
    expect(architectures).toEqual(['amd64'])
  })

  it.each([
    ['its annotation', { annotations: { [keys.referenceType]: 'attestation-manifest' } }],
    ['its platform', { platform: { os: 'unknown', architecture: 'unknown' } }],
  ])('an index of which only a statement is carried, known by %s, is refused', (_, more) => {
    const layout = createLayout()
    const image = layout.image({ more: { platform: { os: 'linux', architecture: 'amd64' } } })
    const layers = [layout.put('{}', 'application/vnd.in-toto+json')]
    const statement = layout.artifact({ artifactType: 'application/vnd.in-toto+json', layers, more })
    const index = layout.index([statement, image])
    layout.list(index)
    expect(walkOver(layout).entries).toMatchObject([{ kind: 'image', platforms: [{ digest: image.digest }] }])
    layout.remove(image.digest)
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({
      reason: 'NothingCarried',
      place: index.digest,
    })
  })

  it('a child that index.json also lists itself is needed', () => {
    const layout = createLayout()
    const [one, two] = [layout.image(), layout.image({ architecture: 'arm64' })]
    layout.list(layout.index([one, two]))
    layout.list(two)
    layout.remove(two.digest)
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({
      reason: 'BlobMissing',
      place: 'index.json#manifests[1]',
    })
  })

  it('a layer that may not be distributed may be absent, but without it the platform is not carried', () => {
    const layout = createLayout()
    const config = layout.putJson(
      { os: 'windows', architecture: 'amd64', rootfs: { diff_ids: ['x'] } },
      mediaTypes.dockerConfig,
    )
    const foreign = {
      ...layout.put('x', 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip'),
      urls: ['https://origin.example/x'],
    }
    layout.list(
      layout.putJson(
        { schemaVersion: 2, mediaType: mediaTypes.dockerManifest, config, layers: [foreign] },
        mediaTypes.dockerManifest,
      ),
    )
    layout.remove(foreign.digest)
    expect(walkOver(layout).entries[0]).toMatchObject({
      kind: 'image',
      platforms: [{ os: 'windows', isCarried: false }],
    })
  })

  it('a document is asked for before what it names, and each blob once', () => {
    const layout = createLayout()
    const [one, two] = [
      layout.image({ layers: ['shared', 'a'] }),
      layout.image({ layers: ['shared', 'b'], architecture: 'arm64' }),
    ]
    layout.list(layout.index([one, two]))
    const walk = createWalk()
    const [index] = walk.addIndexFile(layout.indexFile())
    expect(index).toMatchObject({ kind: 'document', isRequired: true })
    const bytes = (digest: string) => layout.blobs.get(digest.slice(7)) ?? Buffer.alloc(0)
    const digest = index?.digest ?? ''
    expect(walk.addDocument(digest, bytes(digest))).toMatchObject([
      { digest: one.digest, kind: 'document', isRequired: false },
      { digest: two.digest, kind: 'document', isRequired: false },
    ])
    expect(walk.addDocument(digest, bytes(digest))).toEqual([])
    expect(walk.addDocument(two.digest, bytes(two.digest))).toHaveLength(3)
    expect(walk.addDocument(one.digest, bytes(one.digest)).map(({ isRequired }) => isRequired)).toEqual([
      true,
      true,
    ])
    expect([...walk.needs.values()].filter(({ kind }) => kind === 'blob')).toHaveLength(5)
  })

  it('a blob with two sizes is refused', () => {
    const layout = createLayout()
    layout.list(layout.image({ layers: ['x'] }))
    const config = layout.put('{}', mediaTypes.emptyConfig)
    const wrong = { ...layout.put('x', mediaTypes.layer), size: 2 }
    layout.list(layout.putJson({ schemaVersion: 2, config, layers: [wrong] }, mediaTypes.manifest))
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({ reason: 'SizeDiffers' })
  })

  it('a blob that is a layer here and a manifest there is read as a manifest', () => {
    const layout = createLayout()
    const inner = layout.image()
    const config = layout.put('{}', mediaTypes.emptyConfig)
    const outer = layout.putJson(
      { schemaVersion: 2, config, layers: [{ ...inner, mediaType: 'text/plain' }] },
      mediaTypes.manifest,
    )
    layout.list(outer)
    layout.list(layout.index([inner, outer]))
    expect(walkOver(layout).walk.documents.has(inner.digest)).toBe(true)
  })

  it('a blob of an unknown type in index.json is kept as it is', () => {
    const layout = createLayout()
    layout.list(layout.put('<x/>', 'application/xml'))
    expect(walkOver(layout).entries).toEqual([
      expect.objectContaining({
        kind: 'artifact',
        mediaType: 'application/xml',
        sizeBytes: 4,
        platforms: [],
      }),
    ])
  })
})

describe('the limits', () => {
  const limited = (limits: Partial<typeof bundleLimits>, layout: TestLayout) =>
    refusalOf(() => walkLayout(layout.blobs, layout.indexFile(), { ...bundleLimits, ...limits }))
  const layoutOf = (count: number) => {
    const layout = createLayout()
    for (let index = 0; index < count; index++) layout.list(layout.image({ layers: [`layer ${index}`] }))
    return layout
  }

  it.each([
    [{ indexFileBytes: 100 }, 'IndexTooLarge', 'index.json'],
    [{ documentBytes: 100 }, 'ManifestTooLarge', 'sha256:'],
    [{ descriptors: 2 }, 'TooManyDescriptors', 'index.json#manifests'],
    [{ blobs: 5 }, 'TooManyBlobs', '#'],
    [{ documents: 2 }, 'TooManyBlobs', 'index.json#manifests[2]'],
  ] as const)('%j is kept', (limits, reason, place) => {
    const { code, details } = limited(limits, layoutOf(3))
    expect({ code, ...details }).toMatchObject({
      code: 'BundleTooLarge',
      reason,
      place: expect.stringContaining(place) as string,
    })
  })

  it('indexes may be nested to a depth', () => {
    const nested = (levels: number) => {
      const layout = createLayout()
      let top = layout.image()
      for (let level = 0; level < levels; level++) top = layout.index([top])
      layout.list(top)
      return layout
    }
    expect(walkOver(nested(3)).entries[0]).toMatchObject({ kind: 'image', platforms: [{ isCarried: true }] })
    expect(limited({}, nested(4)).details).toMatchObject({ reason: 'TooDeep' })
  })
})
