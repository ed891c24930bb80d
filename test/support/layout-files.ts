import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLayout, sha256, type TestDescriptor, type TestLayout } from './layouts.ts'

export interface NamedImage {
  readonly layers: readonly string[]
  /** `io.containerd.image.name` of its descriptor. */
  readonly name?: string
  readonly architecture?: string
}

/** An image with its platform and its name on the descriptor. */
export const addImage = (
  layout: TestLayout,
  { layers, name, architecture = 'amd64' }: NamedImage,
): TestDescriptor =>
  layout.image({
    layers: [...layers],
    architecture,
    more: {
      platform: { architecture, os: 'linux' },
      ...(name === undefined ? {} : { annotations: { 'io.containerd.image.name': name } }),
    },
  })

/** A layout that lists these images. */
export function layoutOf(...images: readonly NamedImage[]): TestLayout {
  const layout = createLayout()
  for (const image of images) layout.list(addImage(layout, image))
  return layout
}

/** Members of an archive of a layout, blobs first, as most tools write them. */
export const layoutMembers = (layout: TestLayout): { name: string; content: Buffer }[] => [
  ...[...layout.blobs].map(([hex, content]) => ({ name: `blobs/sha256/${hex}`, content })),
  { name: 'index.json', content: layout.indexFile() },
  { name: 'oci-layout', content: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
]

/** Writes a layout into a folder, which it makes. */
export function writeLayoutFolder(folder: string, layout: TestLayout): void {
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  for (const { name, content } of layoutMembers(layout)) writeFileSync(join(folder, name), content)
}

/** Path of a blob below a layout. */
export const blobPath = (content: string | Buffer): string => `blobs/sha256/${sha256(content)}`

export const digestOf = (content: string | Buffer): string => `sha256:${sha256(content)}`

/**
 * Writes two images that share a layer of 5,000 bytes and have another one, `one` and `two`, and an image of two
 * platforms of which one is not carried.
 */
export function writeExampleLayout(folder: string): TestLayout {
  const layout = createLayout()
  const base = 'base'.repeat(1_250)
  layout.list(addImage(layout, { layers: [base, 'one'], name: 'docker.io/library/one:1' }))
  layout.list(addImage(layout, { layers: [base, 'two'], name: 'quay.io/acme/two:2' }))
  const held = new Set(layout.blobs.keys())
  const arm = addImage(layout, { layers: ['arm'], architecture: 'arm64' })
  for (const hex of layout.blobs.keys()) if (!held.has(hex)) layout.blobs.delete(hex)
  layout.list(layout.index([addImage(layout, { layers: ['amd'] }), arm]), {
    'org.opencontainers.image.ref.name': 'ghcr.io/acme/many:3',
  })
  writeLayoutFolder(folder, layout)
  return layout
}
