import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mediaTypes } from '../../src/content/format/media-types.ts'

/** A descriptor as tests write it. */
export interface TestDescriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly [field: string]: unknown
}

export const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

/** An OCI image layout in memory. Each verb adds blobs and returns the descriptor of what it added. */
export function createLayout() {
  const blobs = new Map<string, Buffer>()
  const listed: TestDescriptor[] = []
  const put = (content: string | Uint8Array, mediaType: string, more: object = {}): TestDescriptor => {
    const bytes = Buffer.from(content as string)
    const hex = sha256(bytes)
    blobs.set(hex, bytes)
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length, ...more }
  }
  const putJson = (value: unknown, mediaType: string, more: object = {}) =>
    put(JSON.stringify(value), mediaType, more)

  return {
    blobs,
    put,
    putJson,
    /** An image of as many layers as texts. */
    image({ architecture = 'amd64', layers = ['layer'], os = 'linux', more = {}, config = {} } = {}) {
      const configured = putJson(
        {
          architecture,
          os,
          rootfs: { type: 'layers', diff_ids: layers.map((text) => `sha256:${sha256(text)}`) },
          ...config,
        },
        mediaTypes.config,
      )
      return putJson(
        {
          schemaVersion: 2,
          mediaType: mediaTypes.manifest,
          config: configured,
          layers: layers.map((text) => put(text, mediaTypes.layer)),
        },
        mediaTypes.manifest,
        more,
      )
    },
    /** An artifact: a manifest with an empty configuration. */
    artifact({ artifactType, layers, annotations = {}, more = {} }: ArtifactOptions) {
      const config = put('{}', mediaTypes.emptyConfig)
      return putJson(
        { schemaVersion: 2, mediaType: mediaTypes.manifest, artifactType, config, layers, annotations },
        mediaTypes.manifest,
        more,
      )
    },
    index(manifests: readonly object[], more: object = {}) {
      return putJson({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }, mediaTypes.index, more)
    },
    /** Lists a descriptor in index.json. */
    list(descriptor: TestDescriptor, annotations?: Readonly<Record<string, string>>) {
      listed.push({ ...descriptor, ...(annotations ? { annotations } : {}) })
    },
    remove: (digest: string) => blobs.delete(digest.slice(7)),
    indexFile: () =>
      Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests: listed })),
    /** Writes index.json and `blobs`, without `sha256` in between, as an upload has them. */
    writeUpload(folder: string) {
      mkdirSync(join(folder, 'blobs'), { recursive: true })
      writeFileSync(join(folder, 'index.json'), this.indexFile())
      for (const [hex, bytes] of blobs) writeFileSync(join(folder, 'blobs', hex), bytes)
    },
  }
}

interface ArtifactOptions {
  readonly artifactType: string
  readonly layers: readonly TestDescriptor[]
  readonly annotations?: Readonly<Record<string, string>>
  readonly more?: object
}

export type TestLayout = ReturnType<typeof createLayout>
