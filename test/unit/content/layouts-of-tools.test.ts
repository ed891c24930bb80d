import { describe, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/content/format/media-types.ts'
import { readRecorded, recordedLayouts, type RecordedLayout } from '../../support/recorded-layouts.ts'
import { createLayout } from '../../support/layouts.ts'
import { refusalOf } from '../../support/refusal-of.ts'
import { walkLayout } from '../../support/walk-layout.ts'

function walkRecorded({ index, blobs, layers }: RecordedLayout) {
  const all = new Map(Object.entries(blobs).map(([hex, text]) => [hex, Buffer.from(text)]))
  // The content of a layer does not matter here.
  for (const hex of Object.keys(layers)) all.set(hex, Buffer.alloc(0))
  return walkLayout(all, Buffer.from(index))
}

const amd64 = [{ os: 'linux', architecture: 'amd64', isCarried: true }]
const arm64 = { os: 'linux', architecture: 'arm64', variant: 'v8' }
const busybox = { name: 'docker.io/library/busybox', tag: '1.36' }

const expected: Record<string, readonly object[]> = {
  'umoci.json': [{ platforms: amd64 }],
  'skopeo-tag.json': [{ platforms: amd64 }],
  'skopeo-without-name.json': [{ platforms: amd64 }],
  'skopeo-name.json': [{ ...busybox, platforms: amd64 }],
  'skopeo-whole-name.json': [{ name: 'registry.example:5000/tools/busybox', tag: '1.36', platforms: amd64 }],
  'podman-save.json': [{ ...busybox, platforms: amd64 }],
  'podman-manifest-push.json': [
    { name: 'example.test/multi', tag: '2', platforms: [...amd64, { ...arm64, isCarried: true }] },
  ],
  'buildah-push.json': [{ name: 'quay.io/vendor/app', tag: '3', platforms: amd64 }],
  'ctr-export.json': [
    { ...busybox, platforms: amd64 },
    { name: 'registry.example/tools/busybox', tag: 'v1', platforms: amd64 },
    { name: 'docker.io/library/busybox', platforms: amd64 },
    { platforms: amd64 },
  ],
  'ctr-export-all-platforms.json': [
    {
      name: 'registry.example/tools/multi',
      tag: '2',
      platforms: [...amd64, { ...arm64, isCarried: true }],
    },
  ],
  'ctr-export-one-platform.json': [
    {
      name: 'registry.example/tools/multi',
      tag: '2',
      platforms: [...amd64, { ...arm64, isCarried: false }],
    },
  ],
  'ctr-export-made-up-name.json': [{ platforms: amd64 }],
}

describe('the layouts that tools write', () => {
  it.each(recordedLayouts)('%s has the names and platforms that its tool gave', (file) => {
    const { entries, walk } = walkRecorded(readRecorded(file))
    const [first] = entries
    expect(entries.map(({ name, tag, platforms }) => ({ name, tag, platforms }))).toEqual(
      (expected[file] ?? []).map((entry) => ({
        name: undefined,
        tag: undefined,
        ...entry,
        platforms: (entry as { platforms: object[] }).platforms.map((platform) => ({
          ...platform,
          digest: expect.stringMatching(/^sha256:/) as string,
        })),
      })),
    )
    expect(entries.every(({ kind, nameProblem }) => kind === 'image' && nameProblem === undefined)).toBe(true)
    expect(first?.createdAt).toBeGreaterThan(Date.UTC(2026, 10, 1))
    const sizes = [...walk.needs.values()].filter(
      ({ digest }) => digest.slice(7) in readRecorded(file).layers,
    )
    expect(sizes.map(({ sizeBytes }) => sizeBytes).sort()).toEqual(
      Object.values(readRecorded(file).layers).sort(),
    )
  })

  it('docker save before version 25.0.0, whose manifests name no layers, is refused and the reason given', () => {
    // https://github.com/moby/moby/issues/47065: the index and the manifest as reported there.
    const layout = createLayout()
    const config = layout.putJson(
      {
        architecture: 'amd64',
        os: 'linux',
        rootfs: { type: 'layers', diff_ids: [`sha256:${'a'.repeat(64)}`] },
      },
      mediaTypes.config,
      { platform: { architecture: 'amd64', os: 'linux' } },
    )
    const manifest = layout.putJson(
      { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [] },
      mediaTypes.manifest,
    )
    layout.list(manifest, {
      'io.containerd.image.name': 'docker.io/library/hello-world:latest',
      'org.opencontainers.image.ref.name': 'latest',
    })
    const { details, message } = refusalOf(() => walkLayout(layout.blobs, layout.indexFile()))
    expect(details).toEqual({ reason: 'LayersDiffer', place: manifest.digest })
    expect(message).toContain('early versions 25.0 of docker save')
  })

  it('docker save of version 25.0.0, whose manifests name the layers in another order, is refused', () => {
    // https://github.com/moby/moby/issues/47150
    const layout = createLayout()
    const image = (order: readonly string[]) => {
      const diffIds = ['one', 'two'].map((text) => layout.put(text, mediaTypes.layer).digest)
      const config = layout.putJson(
        { os: 'linux', architecture: 'amd64', rootfs: { diff_ids: diffIds } },
        mediaTypes.config,
      )
      const layers = order.map((text) => layout.put(text, mediaTypes.layer))
      return layout.putJson({ schemaVersion: 2, config, layers }, mediaTypes.manifest)
    }
    layout.list(image(['one', 'two']))
    expect(walkLayout(layout.blobs, layout.indexFile()).entries).toHaveLength(1)
    const wrong = image(['two', 'one'])
    layout.list(wrong)
    const { details, message } = refusalOf(() => walkLayout(layout.blobs, layout.indexFile()))
    expect(details).toEqual({ reason: 'LayersDiffer', place: wrong.digest })
    expect(message).toContain('whose layer 0 is another one by its configuration')
  })

  it('an artifact of oras is kept by its digest, with the names of its files', () => {
    // The form of `oras push --oci-layout hello:foo foo.txt`, version 1.1 and later.
    const layout = createLayout()
    const annotations = { 'org.opencontainers.image.title': 'foo.txt' }
    const layer = layout.put('foo\n', mediaTypes.layer, { annotations })
    const config = { ...layout.put('{}', mediaTypes.emptyConfig), data: 'e30=' }
    const manifest = {
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      artifactType: 'application/vnd.unknown.artifact.v1',
      config,
      layers: [layer],
      annotations: { 'org.opencontainers.image.created': '2024-01-05T19:48:22Z' },
    }
    layout.list(layout.putJson(manifest, mediaTypes.manifest), { 'org.opencontainers.image.ref.name': 'foo' })
    const [entry] = walkLayout(layout.blobs, layout.indexFile()).entries
    expect(entry).toMatchObject({
      kind: 'artifact',
      files: [{ title: 'foo.txt', digest: layer.digest, sizeBytes: 4 }],
      createdAt: Date.UTC(2024, 0, 5, 19, 48, 22),
      platforms: [],
    })
    expect(entry).not.toHaveProperty('name')
  })
})
