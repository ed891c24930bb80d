import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { annotations, mediaTypes } from '../src/content/format/media-types.ts'
import { noise } from './noise.ts'

/** An OCI image layout on the disk. */
export interface BenchLayout {
  readonly folder: string
  /** Path of its index.json. */
  readonly index: string
  /** All blobs: images with their layers, in the order of a push. */
  readonly blobs: readonly Blob[]
  /** Of all blobs. */
  readonly sizeBytes: number
}

export interface Blob {
  /** Hex. */
  readonly sha256: string
  readonly sizeBytes: number
  readonly file: string
}

export interface LayoutPlan {
  readonly images: number
  readonly layersPerImage: number
  readonly layerBytes: number
  /** So many layers, counted from the last one, have other bytes than those of the same plan with 0. */
  readonly changedLayers?: number
}

/**
 * Writes a layout of images whose layers cannot be compressed, as those of real images, which are compressed already.
 * The same bytes on every machine.
 * @param folder is created; layouts in one folder share their equal blobs
 */
export function writeLayout(folder: string, plan: LayoutPlan, indexName = 'index.json'): BenchLayout {
  const { images, layersPerImage, layerBytes, changedLayers = 0 } = plan
  const blobFolder = join(folder, 'blobs', 'sha256')
  mkdirSync(blobFolder, { recursive: true })
  const blobs: Blob[] = []
  const put = (content: Iterable<Buffer>): Blob => {
    const blob = writeBlob(blobFolder, content)
    blobs.push(blob)
    return blob
  }
  const putJson = (content: unknown) => put([Buffer.from(JSON.stringify(content))])
  const firstChanged = images * layersPerImage - changedLayers

  const manifests = Array.from({ length: images }, (_each, image) => {
    const layers = Array.from({ length: layersPerImage }, (_layer, index) => {
      const number = image * layersPerImage + index
      return put(noise(number < firstChanged ? `layer ${number}` : `other ${number}`, layerBytes))
    })
    const config = putJson({
      ...{ architecture: 'amd64', os: 'linux', config: {} },
      rootfs: { type: 'layers', diff_ids: layers.map(({ sha256 }) => `sha256:${sha256}`) },
    })
    const manifest = putJson({
      ...{ schemaVersion: 2, mediaType: mediaTypes.manifest },
      config: descriptor(mediaTypes.config, config),
      layers: layers.map((layer) => descriptor(mediaTypes.layerGzip, layer)),
    })
    const name = `registry.example/bench/image-${image}:1.0`
    return { ...descriptor(mediaTypes.manifest, manifest), annotations: { [annotations.imageName]: name } }
  })
  const index = join(folder, indexName)
  writeFileSync(index, JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }))
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  return { folder, index, blobs, sizeBytes: blobs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }
}

/** Packs a layout as `.tar.zst` with a window of 8 MiB, index.json first. */
export function packLayout({ folder }: BenchLayout, file: string): string {
  const script = 'tar -C "$1" -cf - index.json oci-layout blobs | zstd -q -1 --zstd=wlog=23 -o "$2"'
  execFileSync('bash', ['-o', 'pipefail', '-c', script, 'bash', folder, file], { stdio: 'pipe' })
  return file
}

function writeBlob(folder: string, content: Iterable<Buffer>): Blob {
  const unnamed = join(folder, 'unnamed')
  const hash = createHash('sha256')
  let sizeBytes = 0
  const file = openSync(unnamed, 'w')
  try {
    for (const chunk of content) {
      hash.update(chunk)
      writeSync(file, chunk)
      sizeBytes += chunk.length
    }
  } catch (error) {
    rmSync(unnamed)
    throw error
  } finally {
    closeSync(file)
  }
  const sha256 = hash.digest('hex')
  renameSync(unnamed, join(folder, sha256))
  return { sha256, sizeBytes, file: join(folder, sha256) }
}

const descriptor = (mediaType: string, { sha256, sizeBytes }: Blob) => ({
  ...{ mediaType, digest: `sha256:${sha256}`, size: sizeBytes },
})
