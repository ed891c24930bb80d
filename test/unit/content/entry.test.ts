import { describe, expect, it } from 'vitest'
import { bundleLimits } from '../../../src/content/format/refusal.ts'
import { annotations as keys, artifactTypes, mediaTypes } from '../../../src/content/format/media-types.ts'
import { createLayout, sha256, type TestLayout } from '../../support/layouts.ts'
import { refusalOf } from '../../support/refusal-of.ts'
import { walkLayout } from '../../support/walk-layout.ts'

const walkOver = (layout: TestLayout) => walkLayout(layout.blobs, layout.indexFile())

describe('the kind of an entry', () => {
  it('a chart is known by its configuration, which gives name and version', () => {
    const layout = createLayout()
    const config = layout.putJson(
      { name: 'podinfo', version: '6.0.0', apiVersion: 'v2' },
      mediaTypes.chartConfig,
    )
    const layers = [layout.put('tgz', mediaTypes.chartContent)]
    layout.list(layout.putJson({ schemaVersion: 2, config, layers }, mediaTypes.manifest), {
      [keys.refName]: 'registry.example/charts/podinfo:6.0.0',
    })
    expect(walkOver(layout).entries[0]).toMatchObject({
      kind: 'chart',
      title: 'podinfo',
      version: '6.0.0',
      name: 'registry.example/charts/podinfo',
      tag: '6.0.0',
      platforms: [],
    })
  })

  it('a program has name, version, architecture and files', () => {
    const layout = createLayout()
    const file = layout.put('elf', mediaTypes.fileContent, { annotations: { [keys.title]: 'bin/kubectl' } })
    layout.list(
      layout.artifact({
        artifactType: artifactTypes.program,
        layers: [file],
        annotations: { [keys.title]: 'kubernetes', [keys.version]: '1.33.3' },
        more: { platform: { os: 'linux', architecture: 'arm64' } },
      }),
    )
    const { entries, architectures } = walkOver(layout)
    expect(entries[0]).toMatchObject({
      kind: 'program',
      title: 'kubernetes',
      version: '1.33.3',
      platforms: [{ os: 'linux', architecture: 'arm64', isCarried: true }],
      files: [{ title: 'bin/kubectl', manifest: entries[0]?.digest, digest: file.digest, sizeBytes: 3 }],
    })
    expect(architectures).toEqual(['arm64'])
  })

  it.each(['../x', '/etc/passwd', 'a/../b', 'a//b', '', 'a\u0000', 'a\\b', '.', 'a/'])(
    'a program with a file %j is refused',
    (title) => {
      const layout = createLayout()
      const file = layout.put('elf', mediaTypes.fileContent, { annotations: { [keys.title]: title } })
      layout.list(layout.artifact({ artifactType: artifactTypes.program, layers: [file] }))
      expect(refusalOf(() => walkOver(layout)).details).toMatchObject({ reason: 'FileNameInvalid' })
    },
  )

  it('another artifact keeps its type, and only the names of files that are safe', () => {
    const layout = createLayout()
    const layers = ['good.txt', '../bad.txt'].map((title) =>
      layout.put(title, 'text/plain', { annotations: { [keys.title]: title } }),
    )
    layout.list(layout.artifact({ artifactType: 'application/vnd.example', layers }))
    expect(walkOver(layout).entries[0]).toMatchObject({ kind: 'artifact', files: [{ title: 'good.txt' }] })
  })

  it('a signature of cosign is an artifact although its configuration is that of an image', () => {
    const layout = createLayout()
    const config = layout.putJson(
      { architecture: '', os: '', rootfs: { type: 'layers', diff_ids: ['sha256:x'] } },
      mediaTypes.config,
    )
    const layers = [layout.put('{}', 'application/vnd.dev.cosign.simplesigning.v1+json')]
    layout.list(layout.putJson({ schemaVersion: 2, config, layers }, mediaTypes.manifest))
    expect(walkOver(layout).entries[0]).toMatchObject({ kind: 'artifact', platforms: [] })
  })

  it('a definition is what its annotation marks, and its first layer is the archive', () => {
    const layout = createLayout()
    const archive = layout.put('tgz', mediaTypes.layerGzip)
    const definition = layout.artifact({ artifactType: artifactTypes.definition, layers: [archive] })
    layout.list(definition, { [keys.contentType]: 'spc' })
    const found = walkOver(layout)
    expect(found.entries[0]?.kind).toBe('definition')
    expect(found.definition).toEqual({ digest: archive.digest, sizeBytes: 3 })
    layout.list(definition, { [keys.contentType]: 'spc', [keys.refName]: 'again' })
    expect(walkOver(layout).definition).toEqual(found.definition)
    layout.list(layout.artifact({ artifactType: 'other/definition', layers: [archive] }), {
      [keys.contentType]: 'spc',
    })
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({
      reason: 'DefinitionTwice',
      place: 'index.json#manifests[2]',
    })
  })

  it('what is marked as a definition without an archive is refused', () => {
    const layout = createLayout()
    layout.list(layout.artifact({ artifactType: artifactTypes.definition, layers: [] }), {
      [keys.contentType]: 'spc',
    })
    expect(refusalOf(() => walkOver(layout)).details).toMatchObject({ reason: 'DefinitionInvalid' })
  })

  it('a program of several architectures has the files of each, by the manifest of its platform', () => {
    const layout = createLayout()
    const manifestOf = (architecture: string) =>
      layout.artifact({
        artifactType: artifactTypes.program,
        layers: [
          layout.put(`elf ${architecture}`, mediaTypes.fileContent, {
            annotations: { [keys.title]: 'bin/kubectl' },
          }),
        ],
        annotations: { [keys.title]: 'kubernetes', [keys.version]: '1.33.3' },
        more: { platform: { os: 'linux', architecture } },
      })
    const [amd64, arm64] = [manifestOf('amd64'), manifestOf('arm64')]
    layout.list(layout.index([amd64, arm64]))
    const { entries, architectures } = walkOver(layout)
    expect(entries).toMatchObject([
      {
        kind: 'program',
        title: 'kubernetes',
        version: '1.33.3',
        platforms: [{ digest: amd64.digest }, { digest: arm64.digest }],
        files: [
          { title: 'bin/kubectl', manifest: amd64.digest, sizeBytes: 9 },
          { title: 'bin/kubectl', manifest: arm64.digest, sizeBytes: 9 },
        ],
      },
    ])
    expect(architectures).toEqual(['amd64', 'arm64'])
  })

  it.each(['constructor', '__proto__', 'toString'])(
    'an artifact type %s is one like any other',
    (artifactType) => {
      const layout = createLayout()
      layout.list(layout.artifact({ artifactType, layers: [layout.put('x', 'text/plain')] }))
      expect(walkOver(layout).entries[0]?.kind).toBe('artifact')
    },
  )

  it('the size of an entry counts each of its blobs once', () => {
    const layout = createLayout()
    const images = [
      layout.image({ layers: ['shared', 'shared'] }),
      layout.image({ architecture: 'arm64', layers: ['shared'] }),
    ]
    layout.list(layout.index(images))
    const all = [...layout.blobs.values()].reduce((sum, { length }) => sum + length, 0)
    expect(walkOver(layout).entries[0]?.sizeBytes).toBe(all)
  })

  it('entries that repeat one long index are refused, since the record would repeat it too', () => {
    const layout = createLayout()
    const platform = { os: 'linux', architecture: 'amd64' }
    const absent = { mediaType: mediaTypes.manifest, size: 1, platform }
    const others = Array.from({ length: 1_000 }, (_, index) => ({
      ...absent,
      digest: `sha256:${sha256(`${index}`)}`,
    }))
    const index = layout.index([layout.image({ more: { platform } }), ...others])
    for (let tag = 0; tag < 100; tag++) layout.list(index, { [keys.imageName]: `busybox:${tag}` })
    expect(walkOver(layout).entries[99]?.platforms).toHaveLength(1_001)
    const few = { ...bundleLimits, steps: 99 * 1_000 }
    expect(refusalOf(() => walkLayout(layout.blobs, layout.indexFile(), few)).details).toMatchObject({
      reason: 'TooManyDescriptors',
    })
  })

  it('entries that name the same blobs too often are refused, since adding up their sizes would take too long', () => {
    const layout = createLayout()
    const image = layout.image({ layers: Array.from({ length: 200 }, (_, index) => `${index}`) })
    for (let index = 0; index < 100; index++)
      layout.list(
        layout.putJson(
          { schemaVersion: 2, manifests: [image], annotations: { n: `${index}` } },
          mediaTypes.index,
        ),
      )
    expect(walkOver(layout).entries).toHaveLength(100)
    const few = { ...bundleLimits, steps: 100 * 200 }
    expect(refusalOf(() => walkLayout(layout.blobs, layout.indexFile(), few)).details).toMatchObject({
      reason: 'TooManyDescriptors',
    })
  })
})
