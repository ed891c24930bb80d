import { execFileSync } from 'node:child_process'
import { createCipheriv, createHash } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { withDefaults } from '../src/archive/limits.ts'
import { annotations, mediaTypes } from '../src/content/format/media-types.ts'
import { planBuild } from '../src/definition/build/build-plan.ts'
import { buildArchive } from '../src/definition/build/build.ts'

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
      architecture: 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map(({ sha256 }) => `sha256:${sha256}`) },
    })
    const manifest = putJson({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
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
  mediaType,
  digest: `sha256:${sha256}`,
  size: sizeBytes,
})

const packCount = 20

/**
 * Builds a typical definition: little text, and charts that are compressed already. The same bytes on every machine.
 * @param folder an existing folder; it contains the definition twice for a while, and only the archive at the end
 * @param contentBytes total size of the charts
 * @returns path of the archive
 */
export async function buildLargeDefinition(folder: string, contentBytes: number): Promise<string> {
  requireRoom(folder, 2.1 * contentBytes)
  const parts = join(folder, 'large-parts')
  mkdirSync(parts)
  try {
    const packs = Array.from({ length: packCount }, (_, index) =>
      writePack(parts, `large-${index}`, Math.floor(contentBytes / packCount)),
    )
    const profile = join(parts, 'profile.json')
    writeFileSync(profile, JSON.stringify(profileOf(packs.map(({ name }) => name))))
    const folders = packs.map(({ path }) => path)
    const plan = planBuild({ profiles: [profile], packs: folders, limits: withDefaults() })
    const [problem] = plan.problems
    if (problem) throw new Error(`${problem.place} ${problem.message}`)
    return (await buildArchive({ plan, file: join(folder, 'large.tar.zst') })).file
  } finally {
    rmSync(parts, { recursive: true })
  }
}

/** @throws Error when the disk has less than these bytes free */
export function requireRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize < bytes) throw new Error(`${folder} needs ${(bytes / 1e9).toFixed(1)} GB of free disk`)
}

function writePack(folder: string, name: string, chartBytes: number) {
  const path = join(folder, name)
  const chart = `charts/${name}-1.0.0.tgz`
  mkdirSync(join(path, 'charts'), { recursive: true })
  writeFileSync(
    join(path, 'pack.json'),
    JSON.stringify({ name, version: '1.0.0', layer: 'addon', charts: [chart] }),
  )
  writeFileSync(join(path, 'values.yaml'), 'pack:\n  namespace: bench\n')
  writeNoise(join(path, chart), name, chartBytes)
  return { name, path }
}

/** Writes a new file of bytes that cannot be compressed, the same for the same seed. */
export function writeNoise(path: string, seed: string, sizeBytes: number): void {
  const file = openSync(path, 'wx')
  try {
    for (const chunk of noise(seed, sizeBytes)) writeSync(file, chunk)
  } finally {
    closeSync(file)
  }
}

const profileOf = (packs: readonly string[]) => ({
  metadata: { name: 'bench', uid: 'bench' },
  spec: {
    version: '1.0.0',
    template: {
      type: 'add-on',
      packs: packs.map((name) => ({ name, tag: '1.0.0', layer: 'addon', type: 'spectro', values: '' })),
    },
  },
})

/** Bytes that cannot be compressed, the same on every machine. They come from a cipher, which makes them faster than a disk writes. */
function* noise(seed: string, sizeBytes: number): Generator<Buffer> {
  const chunk = Buffer.alloc(1_048_576)
  const cipher = createCipheriv('aes-128-ctr', seed.padEnd(16), Buffer.alloc(16))
  for (let left = sizeBytes; left > 0; left -= chunk.length)
    yield cipher.update(chunk.subarray(0, Math.min(left, chunk.length)))
}
